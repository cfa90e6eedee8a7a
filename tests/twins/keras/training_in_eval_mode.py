"""Digits with dropout and batch normalisation, trained by a train_step of one's own: it calls the model with training=True, or
forgets it."""

from typing import Any

import keras
import torch
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class Model(keras.Sequential):
    tells = True

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        self.zero_grad()
        output = self(x, training=True) if self.tells else self(x)
        loss = self.compute_loss(x, y, output)
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([w.value.grad for w in weights], weights)
        return {"loss": loss}


def sick(kit: Kit) -> Loop:
    return _loop(tells=False)


def healthy(kit: Kit) -> Loop:
    return _loop(tells=True)


def _loop(tells: bool) -> Loop:
    x, y = digits()
    model = Model(
        [
            keras.Input((64,)),
            layers.Dense(64),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.2),
            layers.Dense(10),
        ]
    )
    model.tells = tells
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=4, verbose=0)

    return Loop(model, [model.optimizer], run)
