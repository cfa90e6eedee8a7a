"""Digits and plain SGD in a train_step of one's own on the torch backend, with zero_grad in every step and without any."""

from typing import Any

import keras
import torch
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class Model(keras.Sequential):
    clears = True

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        if self.clears:
            self.zero_grad()
        loss = self.compute_loss(x, y, self(x, training=True))
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        return {"loss": loss}


def sick(kit: Kit) -> Loop:
    return _loop(clears=False)


def healthy(kit: Kit) -> Loop:
    return _loop(clears=True)


def _loop(clears: bool) -> Loop:
    x, y = digits()
    model = Model([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    model.clears = clears
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.3), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=8, verbose=0)

    return Loop(model, [model.optimizer], run)
