import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from keras import layers
from sklearn.datasets import load_diabetes


class NoisyRegressor(keras.Model):
    """Adds a little noise to the inputs while training."""

    def __init__(self, noise=0.1):
        super().__init__()
        self.noise = noise
        self.hidden = layers.Dense(24, activation="tanh")
        self.out = layers.Dense(1)
        self.loss_metric = keras.metrics.Mean(name="loss")
        self.mae_metric = keras.metrics.MeanAbsoluteError(name="mae")

    @property
    def metrics(self):
        return [self.loss_metric, self.mae_metric]

    def call(self, x):
        return self.out(self.hidden(x))

    def train_step(self, data):
        x, y = data
        x = x + self.noise * torch.randn_like(x)
        self.zero_grad()
        pred = self(x, training=True)
        loss = keras.ops.mean((pred - y) ** 2)
        loss.backward()
        grads = [v.value.grad for v in self.trainable_weights]
        with torch.no_grad():
            self.optimizer.apply(grads, self.trainable_weights)
        self.loss_metric.update_state(loss.detach())
        self.mae_metric.update_state(y, pred.detach())
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        pred = self(x, training=False)
        self.loss_metric.update_state(keras.ops.mean((pred - y) ** 2))
        self.mae_metric.update_state(y, pred)
        return {m.name: m.result() for m in self.metrics}


keras.utils.set_random_seed(19)
X, y = load_diabetes(return_X_y=True)
X = ((X - X.mean(0)) / X.std(0)).astype("float32")
y = ((y - y.mean()) / y.std()).astype("float32")[:, None]
order = np.random.permutation(len(X))
train, val = order[:352], order[352:]
model = NoisyRegressor()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(X[train], y[train], epochs=22, batch_size=32, validation_data=(X[val], y[val]), verbose=2)
