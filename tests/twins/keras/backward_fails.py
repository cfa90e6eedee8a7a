"""A shift that is added in place to what sigmoid still needs for its gradient; added to a new array it is fine."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Centred(layers.Layer):
    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place

    def call(self, x: Any) -> Any:
        y = ops.sigmoid(x)
        if self.in_place:
            y -= 0.5
            return y
        return y - 0.5


def sick(kit: Kit) -> Subject:
    return _training(kit, in_place=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, in_place=False)


def _training(kit: Kit, in_place: bool) -> Subject:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64), Centred(in_place), layers.Dense(10)])
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
