import os
os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits

torch.set_num_threads(1)
SEED = 33
keras.utils.set_random_seed(SEED)


def backbone():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(6, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(12, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(8, activation="tanh"),
        ],
        name="backbone",
    )


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.base = backbone()
        self.base.trainable = False
        self.hidden = layers.Dense(32, activation="relu")
        self.logits = layers.Dense(10)

    def call(self, x):
        return self.logits(self.hidden(self.base(x)))


digits = load_digits()
rng = np.random.default_rng(SEED)
order = rng.permutation(len(digits.target))
x = (digits.images[order, :, :, None] / 8.0 - 1.0).astype("float32")
y = digits.target[order]
split = 1450

model = Classifier()
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
)
history = model.fit(
    x[:split],
    y[:split],
    batch_size=50,
    epochs=12,
    validation_data=(x[split:], y[split:]),
    verbose=0,
)
for n, (a, b, c) in enumerate(zip(history.history["loss"], history.history["acc"], history.history["val_acc"])):
    print(f"{n + 1:2d}. loss {a:.4f}  acc {b:.3f}  val_acc {c:.3f}")
