"""Predict a value together with its uncertainty: mean and spread of a normal distribution."""
import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers, ops


def field(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 3))
    centre = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1]
    spread = 0.1 + 0.25 * np.abs(x[:, 2])
    return x.astype("float32"), (centre + spread * rng.normal(size=n)).astype("float32")[:, None]


class MeanAndSpread(keras.Model):
    def __init__(self, width=40):
        super().__init__()
        self.body = keras.Sequential([layers.Dense(width, activation="tanh"), layers.Dense(width, activation="tanh")])
        self.mean = layers.Dense(1)
        self.spread = layers.Dense(1, activation="relu")

    def call(self, x):
        h = self.body(x)
        return ops.concatenate([self.mean(h), self.spread(h)], axis=-1)


def gaussian_nll(y_true, y_pred):
    mean, spread = y_pred[:, :1], y_pred[:, 1:]
    z = (y_true - mean) / spread
    return ops.mean(0.5 * ops.square(z) + ops.log(spread))


def main():
    keras.utils.set_random_seed(14)
    x, y = field(2000, 0)
    x_test, y_test = field(500, 1)
    model = MeanAndSpread()
    model.compile(optimizer=keras.optimizers.Adam(2e-3, clipnorm=5.0), loss=gaussian_nll)
    for epoch in range(12):
        log = model.fit(x, y, batch_size=50, epochs=1, verbose=0).history
        test = model.evaluate(x_test, y_test, batch_size=250, verbose=0)
        print(f"epoch {epoch + 1}: nll {log['loss'][0]:.4f}  test nll {test:.4f}")
    out = model.predict(x_test, verbose=0)
    within = np.mean(np.abs(out[:, :1] - y_test) < 2 * out[:, 1:])
    print(f"within two spreads: {within:.3f}")


main()
