import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits


class DigitSequence(keras.utils.PyDataset):
    """Batches of digits, shifted by up to one pixel when augment is set."""

    def __init__(self, images, labels, batch_size, augment=False, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.images, self.labels = images, labels
        self.batch_size, self.augment = batch_size, augment
        self.rng = np.random.default_rng(seed)
        self.order = np.arange(len(images))

    def __len__(self):
        return len(self.images) // self.batch_size

    def __getitem__(self, idx):
        low = idx // len(self) * self.batch_size
        high = low + self.batch_size
        rows = self.order[low:high]
        x, y = self.images[rows], self.labels[rows]
        if self.augment:
            x = np.roll(x, self.rng.integers(-1, 2), axis=2)
        return x, y


keras.utils.set_random_seed(30)
data = load_digits()
images = (data.images / 16.0).astype("float32")[..., None]
labels = data.target.astype("int32")
perm = np.random.permutation(len(images))
train = DigitSequence(images[perm[:1408]], labels[perm[:1408]], 32)
x_val, y_val = images[perm[1408:]], labels[perm[1408:]]

model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(10, 3, activation="relu"),
        layers.Conv2D(10, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(10),
    ]
)
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(train, epochs=6, validation_data=(x_val, y_val), verbose=2)
