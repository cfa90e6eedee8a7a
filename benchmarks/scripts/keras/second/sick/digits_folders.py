"""Digits read the way one reads a directory with one folder for each class."""
import os
os.environ.setdefault("KERAS_BACKEND", "torch")
import argparse

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits

torch.set_num_threads(1)


def read_folders(train):
    data = load_digits()
    images, labels = [], []
    for c in range(10):
        of_class = data.images[data.target == c]
        of_class = of_class[np.random.default_rng(c).permutation(len(of_class))]
        cut = int(0.8 * len(of_class))
        part = of_class[:cut] if train else of_class[cut:]
        images.append(part)
        labels += [c] * len(part)
    return np.concatenate(images)[..., None].astype("float32") / 16.0, np.array(labels)


def build():
    inputs = keras.Input((8, 8, 1))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dense(48, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1:2d} " + " ".join(f"{k}={v:.3f}" for k, v in logs.items()))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=32)
    args = p.parse_args()
    keras.utils.set_random_seed(0)
    x, y = read_folders(train=True)
    xv, yv = read_folders(train=False)
    model = build()
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(
        x,
        y,
        batch_size=args.batch_size,
        epochs=args.epochs,
        shuffle=False,
        validation_data=(xv, yv),
        callbacks=[Report()],
        verbose=0,
    )
