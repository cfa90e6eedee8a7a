import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Strokes(keras.utils.PyDataset):
    """Digits as 8 x 8 pictures; can be shifted, dimmed and sprinkled with noise on the way."""

    def __init__(self, images, labels, batch_size=32, shuffle=True, augment=True, seed=0):
        super().__init__()
        self.images, self.labels = images, labels
        self.batch_size, self.shuffle, self.augment = batch_size, shuffle, augment
        self.rng = np.random.default_rng(seed)
        self.order = np.arange(len(images))
        self.on_epoch_end()

    def __len__(self):
        return int(np.ceil(len(self.images) / self.batch_size))

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.order)

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        batch = self.images[rows]
        if self.augment:
            batch = np.stack([self.disturb(image) for image in batch])
        return batch, self.labels[rows]

    def disturb(self, image):
        image = np.roll(image, self.rng.integers(-1, 2), axis=1)
        image = image * self.rng.uniform(0.5, 1.1)
        return (image + self.rng.normal(0, 0.15, image.shape)).astype("float32")


def build_model():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(12, 3, padding="same", activation="relu"),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(10, activation="softmax"),
        ]
    )


keras.utils.set_random_seed(31)
digits = load_digits()
images = (digits.images[..., None] / 16.0).astype("float32")
x_train, x_val, y_train, y_val = train_test_split(
    images, digits.target, test_size=0.3, random_state=31, stratify=digits.target
)
train = Strokes(x_train, y_train, seed=1)
val = Strokes(x_val, y_val, shuffle=False, seed=2)

model = build_model()
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
log = keras.callbacks.LambdaCallback(
    on_epoch_end=lambda e, logs: print(f"epoch {e + 1:2d} " + " ".join(f"{k} {v:.4f}" for k, v in logs.items()))
)
model.fit(train, validation_data=val, epochs=20, verbose=0, callbacks=[log])
first, second = model.evaluate(val, verbose=0), model.evaluate(val, verbose=0)
print("evaluated once:", first, "and once more:", second)
