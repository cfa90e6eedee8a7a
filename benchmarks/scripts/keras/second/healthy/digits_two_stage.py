"""Learn features on the digits 0-4, keep them fixed, and train a small head for the digits 5-9."""
import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.set_num_threads(1)
keras.utils.set_random_seed(15)

digits = load_digits()
x = digits.images[..., None].astype("float32") / 16.0
low = digits.target < 5

features = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(24, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(48, 3, padding="same", activation="relu"),
        layers.Flatten(),
    ],
    name="features",
)


class WithHead(keras.Model):
    def __init__(self, features, classes):
        super().__init__()
        self.features = features
        self.head = layers.Dense(classes, activation="softmax")

    def call(self, x):
        return self.head(self.features(x))


def train(model, x, y, epochs, rate):
    xt, xv, yt, yv = train_test_split(x, y, test_size=0.25, stratify=y, random_state=15)
    model.compile(keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    h = model.fit(xt, yt, batch_size=32, epochs=epochs, validation_data=(xv, yv), verbose=0).history
    for e in range(epochs):
        print(f"  epoch {e + 1}: loss {h['loss'][e]:.4f} val loss {h['val_loss'][e]:.4f} val acc {h['val_accuracy'][e]:.4f}")


print("digits 0-4")
train(WithHead(features, 5), x[low], digits.target[low], epochs=6, rate=2e-3)
weights_before = np.concatenate([w.ravel() for w in features.get_weights()])

print("digits 5-9, features kept")
features.trainable = False
train(WithHead(features, 5), x[~low], digits.target[~low] - 5, epochs=10, rate=4e-3)
weights_after = np.concatenate([w.ravel() for w in features.get_weights()])
print("features unchanged:", bool((weights_before == weights_after).all()))
