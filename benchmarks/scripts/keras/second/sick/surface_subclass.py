"""Regression with a Huber-like loss of our own inside compute_loss."""
import os
os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers, ops


def surface(n, rng):
    x = rng.uniform(-1.5, 1.5, size=(n, 4)).astype("float32")
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] ** 2
    y = y + rng.normal(0, 0.05, size=n)
    return x, ((y + 0.37) / 1.1).astype("float32")


class Regressor(keras.Model):
    def __init__(self, width=48, delta=1.0):
        super().__init__()
        self.delta = delta
        self.first = layers.Dense(width, activation="gelu")
        self.second = layers.Dense(width, activation="gelu")
        self.out = layers.Dense(1)

    def call(self, x, training=False):
        return self.out(self.second(self.first(x)))

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        error = ops.abs(y_pred - y)
        small = 0.5 * ops.square(error)
        large = self.delta * (error - 0.5 * self.delta)
        return ops.mean(ops.where(error < self.delta, small, large))


def main():
    keras.utils.set_random_seed(14)
    rng = np.random.default_rng(14)
    x_train, y_train = surface(2000, rng)
    x_test, y_test = surface(500, rng)
    model = Regressor()
    model.compile(optimizer=keras.optimizers.Adam(3e-3))
    for block in range(6):
        history = model.fit(x_train, y_train, batch_size=50, epochs=3, verbose=0)
        pred = model.predict(x_test, verbose=0).reshape(-1)
        rmse = float(np.sqrt(np.mean((pred - y_test) ** 2)))
        print(f"epoch {3 * block + 3:2d}  loss {history.history['loss'][-1]:.4f}  test rmse {rmse:.4f} (spread {y_test.std():.3f})")


main()
