"""Learn features on the digits 0 to 4, then reuse them for 5 to 9 with few samples."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(8)
digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., None]
low, high = digits.target < 5, digits.target >= 5
x_low, y_low = images[low], digits.target[low]
x_high, y_high = images[high], digits.target[high] - 5

trunk = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Flatten(),
    ],
    name="trunk",
)
source = keras.Sequential([trunk, layers.Dense(5, activation="softmax")])
source.compile(optimizer=keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
source.fit(x_low, y_low, batch_size=36, epochs=5, verbose=2)

# Freeze the trunk, train a new head on top of it.
trunk.trainable = False
inputs = keras.Input((8, 8, 1))
features = trunk(inputs, training=False)
features = layers.Dropout(0.2)(features)
outputs = layers.Dense(5, activation="softmax")(features)
target = keras.Model(inputs, outputs)
target.compile(optimizer=keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
order = np.random.permutation(len(x_high))
few, rest = order[:400], order[400:]
target.fit(x_high[few], y_high[few], batch_size=20, epochs=12, validation_data=(x_high[rest], y_high[rest]), verbose=2)
