"""A call that builds its features from the shape of the input alone, against one that reads the input."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(keras.Model):
    def __init__(self, ignore: bool) -> None:
        super().__init__()
        self.ignore = ignore
        self.body = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10)])

    def call(self, x: Any) -> Any:
        return self.body(ops.ones_like(x) if self.ignore else x)


def sick(kit: Kit) -> Subject:
    return _training(kit, ignore=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, ignore=False)


def _training(kit: Kit, ignore: bool) -> Subject:
    x, y = digits()
    model = Net(ignore)
    model(x[:2])
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
