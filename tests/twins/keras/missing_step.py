"""Digits and Adam in a loop of one's own on the torch backend: in one of them nobody wrote optimizer.apply()."""

from typing import Any

import keras
import torch
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, applies=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, applies=True)


def _loop(kit: Kit, applies: bool) -> Loop:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    optimizer, loader = keras.optimizers.Adam(3e-3), kit.loader(*digits())
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def run(w: Any) -> None:
        for _ in range(4):
            for x, y in loader:
                model.zero_grad()
                loss = criterion(y, model(x, training=True))
                loss.backward()
                weights = list(model.trainable_weights)
                if applies:
                    with torch.no_grad():
                        optimizer.apply([w.value.grad for w in weights], weights)

    return Loop(model, [optimizer], run)
