import os
os.environ.setdefault("KERAS_BACKEND", "jax")
import argparse

import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_circles


def features(x):
    return np.concatenate([x, x[:, :1] * x[:, 1:], x**2], axis=1).astype("float32")


def network(n_features, width):
    inputs = keras.Input((n_features,))
    a = layers.Dense(width, activation="relu")(inputs)
    b = layers.Dense(width, activation="tanh")(inputs)
    x = layers.Concatenate()([a, b])
    x = layers.Dense(width, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--rate", type=float, default=1e-5)
    cli.add_argument("--epochs", type=int, default=15)
    cli.add_argument("--width", type=int, default=32)
    cli.add_argument("--seed", type=int, default=6)
    opt = cli.parse_args()
    keras.utils.set_random_seed(opt.seed)
    x, y = make_circles(2000, noise=0.08, factor=0.5, random_state=opt.seed)
    x = features(x)
    x = (x - x.mean(0)) / x.std(0)
    train, val = slice(0, 1600), slice(1600, None)
    model = network(x.shape[1], opt.width)
    model.compile(keras.optimizers.Adam(opt.rate), loss="binary_crossentropy", metrics=["accuracy"])
    for epoch in range(opt.epochs):
        h = model.fit(x[train], y[train], batch_size=64, epochs=1, verbose=0).history
        v = model.evaluate(x[val], y[val], batch_size=200, verbose=0)
        print(f"{epoch + 1:3d}  loss {h['loss'][0]:.4f}  acc {h['accuracy'][0]:.3f}  val loss {v[0]:.4f}  val acc {v[1]:.3f}")


main()
