import os

os.environ["KERAS_BACKEND"] = "jax"

import argparse

import keras
import numpy as np
from keras import layers, ops
from sklearn.datasets import make_circles


class Fourier(layers.Layer):
    """Random but fixed directions, their sines and cosines."""

    def __init__(self, features, scale=1.0, **kwargs):
        super().__init__(**kwargs)
        self.features, self.scale = features, scale

    def build(self, shape):
        self.directions = self.add_weight(
            shape=(shape[-1], self.features),
            initializer=keras.initializers.RandomNormal(stddev=self.scale, seed=5),
            trainable=False,
            name="directions",
        )

    def call(self, x):
        angles = ops.matmul(x, self.directions)
        return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def build(width):
    inputs = keras.Input((2,))
    x = Fourier(24)(inputs)
    x = layers.Dense(width, activation="relu")(x)
    x = layers.Dense(width, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def load(seed):
    x, y = make_circles(4000, noise=0.12, factor=0.6, random_state=seed)
    x = ((x - x.mean(0)) / x.std(0)).astype("float32")
    y = y.astype("float32")[:, None]
    return (x[:3000], y[:3000]), (x[3000:], y[3000:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    keras.utils.set_random_seed(5)
    train, val = load(5)
    model = build(args.width)
    model.compile(
        optimizer=keras.optimizers.AdamW(args.lr, weight_decay=1e-3),
        loss="binary_crossentropy",
        metrics=[keras.metrics.Accuracy()],
    )
    history = model.fit(*train, validation_data=val, epochs=args.epochs, batch_size=64, verbose=0).history
    print("epoch  " + "  ".join(f"{k:>12s}" for k in history))
    for e in range(1, args.epochs, 3):
        print(f"{e + 1:5d}  " + "  ".join(f"{v[e]:12.4f}" for v in history.values()))


main()
