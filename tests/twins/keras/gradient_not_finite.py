"""A penalty on the length of a shift that starts at zero: the root of a sum of squares, and of one that is kept above zero."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Shifted(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.body = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10)])
        self.shift = self.add_weight(shape=(10,), initializer="zeros", name="shift")

    def call(self, x: Any) -> Any:
        return self.body(x) + self.shift


def sick(kit: Kit) -> Subject:
    return _training(kit, least=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, least=1e-6)


def _training(kit: Kit, least: float) -> Subject:
    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(model: Any, batch: Any) -> Any:
        x, y = batch
        length = ops.sqrt(ops.sum(model.shift**2) + least)
        return criterion(y, model(x)) + 1e-3 * length

    x, y = digits()
    model = Shifted()
    model(x[:2])
    return Subject(model, kit.loader(x, y), step=step, optimizer=kit.optimiser(model, "adam", lr=1e-3))
