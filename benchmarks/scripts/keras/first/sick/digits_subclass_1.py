import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(71)


class Net(keras.Model):
    def __init__(self, hidden_units=(64, 64), keep_prob=0.9, classes=10):
        super().__init__()
        self.hidden = [layers.Dense(units, activation="relu") for units in hidden_units]
        self.drops = [layers.Dropout(keep_prob) for _ in hidden_units]
        self.logits = layers.Dense(classes)

    def call(self, inputs, training=False):
        x = inputs
        for dense, drop in zip(self.hidden, self.drops):
            x = drop(dense(x), training=training)
        return self.logits(x)


(x, y) = load_digits(return_X_y=True)
x = x.astype("float32") / 16.0
shuffle = np.random.permutation(len(x))
x, y = x[shuffle], y[shuffle]
train_x, train_y, test_x, test_y = x[:1500], y[:1500], x[1500:], y[1500:]

net = Net()
net.compile(
    optimizer=keras.optimizers.Adam(learning_rate=0.002),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
net.fit(train_x, train_y, batch_size=50, epochs=15, validation_data=(test_x, test_y), verbose=2)
