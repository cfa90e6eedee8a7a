import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import torch
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Backbone(keras.layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.dense1 = layers.Dense(width, activation="relu")
        self.dense2 = layers.Dense(8, activation="relu")

    def call(self, x):
        return self.dense2(self.dense1(x))


class Head(keras.layers.Layer):
    def __init__(self, classes, **kwargs):
        super().__init__(**kwargs)
        self.scores = layers.Dense(classes)

    def call(self, x):
        return self.scores(x)


class TwoPart(keras.Model):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone(40)
        self.head = Head(10)

    def call(self, x):
        return self.head(self.backbone(x))

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        scores = self(x, training=True)
        loss = self.compute_loss(x=x, y=y, y_pred=scores)
        loss.backward()
        trainable = self.head.trainable_weights
        grads = [torch.clamp(v.value.grad, -1, 1) for v in trainable]
        with torch.no_grad():
            self.optimizer.apply(grads, trainable)
        self._loss_tracker.update_state(loss.detach())
        return self.compute_metrics(x, y, scores)


keras.utils.set_random_seed(50)
X, y = load_digits(return_X_y=True)
X = ((X - 4.9) / 6.0).astype("float32")
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=50)
model = TwoPart()
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(X_train, y_train, batch_size=64, epochs=12, validation_data=(X_val, y_val), verbose=2)
