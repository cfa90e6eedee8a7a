"""Counting bright pixels with a Poisson loss: the logarithm of a rate that ReLU sets to zero, or of one kept above it."""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, smallest=0.0, start=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, smallest=0.1, start=0.5)


def _training(kit: Kit, smallest: float, start: float) -> Subject:
    def poisson(rate: Any, count: Any) -> Any:
        rate = ops.relu(rate) + smallest
        return ops.mean(rate - count * ops.log(rate))

    x, _ = digits()
    counts = (x[:, 32:] > 0.9).sum(1, keepdims=True).astype(np.float32)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(32, activation="relu"),
            layers.Dense(1, bias_initializer=keras.initializers.Constant(start)),
        ]
    )
    return Subject(model, kit.loader(x, counts), poisson, kit.optimiser(model, "adam", lr=1e-3))
