import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_digits


class DigitModel(keras.Model):
    """Own training step, so that the gradient norm can be logged."""

    def __init__(self, classes):
        super().__init__()
        self.conv = layers.Conv2D(8, 3, padding="same")
        self.norm = layers.BatchNormalization()
        self.pool = layers.MaxPooling2D()
        self.flatten = layers.Flatten()
        self.dense = layers.Dense(48, activation="relu")
        self.dropout = layers.Dropout(0.4)
        self.classify = layers.Dense(classes)
        self.norm_tracker = keras.metrics.Mean(name="grad_norm")

    def call(self, x, training=None):
        x = keras.ops.relu(self.norm(self.conv(x), training=training))
        x = self.flatten(self.pool(x))
        x = self.dropout(self.dense(x), training=training)
        return self.classify(x)

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        y_pred = self(x, training=False)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        loss.backward()
        weights = list(self.trainable_weights)
        gradients = [v.value.grad for v in weights]
        self.norm_tracker.update_state(torch.sqrt(sum((g**2).sum() for g in gradients)))
        with torch.no_grad():
            self.optimizer.apply(gradients, weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            elif metric.name != "grad_norm":
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


keras.utils.set_random_seed(9)
data = load_digits()
x = (data.images[..., np.newaxis] / 16).astype("float32")
y = data.target
order = np.random.permutation(len(x))
train, test = order[:1440], order[1440:]
model = DigitModel(10)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
)
model.fit(x[train], y[train], batch_size=40, epochs=7, validation_data=(x[test], y[test]), verbose=2)
