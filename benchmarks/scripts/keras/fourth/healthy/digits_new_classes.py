"""Learn the digits 0-5, then take the features over to 6-9: head first, with the rest frozen, then all of it gently."""
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def features():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(12, 3, padding="same", activation="relu"),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(48, activation="relu"),
            layers.Dropout(0.2),
        ],
        name="features",
    )


def with_head(base, classes, name):
    inputs = keras.Input((8, 8, 1))
    x = base(inputs)
    return keras.Model(inputs, layers.Dense(classes, activation="softmax")(x), name=name)


def report(title, history):
    last = len(history["loss"]) - 1
    for e in sorted({0, last // 2, last}):
        print(f"{title} epoch {e + 1:2d}: " + "  ".join(f"{k} {v[e]:.4f}" for k, v in history.items()))


def split(images, labels, keep, seed):
    rows = np.isin(labels, keep)
    return train_test_split(
        images[rows], labels[rows] - keep[0], test_size=0.25, random_state=seed, stratify=labels[rows]
    )


def fit(model, data, rate, epochs, title):
    x, x_val, y, y_val = data
    model.compile(
        optimizer=keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    h = model.fit(x, y, validation_data=(x_val, y_val), epochs=epochs, batch_size=32, verbose=0)
    report(title, h.history)


keras.utils.set_random_seed(50)
digits = load_digits()
images = (digits.images[..., None] / 16.0 - 0.3).astype("float32")
first = split(images, digits.target, [0, 1, 2, 3, 4, 5], 50)
second = split(images, digits.target, [6, 7, 8, 9], 50)

base = features()
fit(with_head(base, 6, "old"), first, 1e-3, 10, "old classes")

base.trainable = False
new = with_head(base, 4, "new")
fit(new, second, 5e-3, 12, "head only  ")

base.trainable = True
fit(new, second, 5e-4, 12, "everything ")
