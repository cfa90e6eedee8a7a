"""A layer with a learned scale that was given the dtype of a NumPy array, float64, against one of the model's own dtype."""

from typing import Any

import keras
import numpy as np
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Scale(layers.Layer):
    def __init__(self, start: np.ndarray) -> None:
        super().__init__(dtype=str(start.dtype))
        self.scale = self.add_weight(shape=start.shape, initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        return x * self.scale


def sick(kit: Kit) -> Subject:
    return _training(kit, np.ones(10))


def healthy(kit: Kit) -> Subject:
    return _training(kit, np.ones(10, dtype=np.float32))


def _training(kit: Kit, start: np.ndarray) -> Subject:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10), Scale(start)])
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
