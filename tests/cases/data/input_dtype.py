"""Digits as NumPy makes them, in float64, and as the model computes, in float32."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    kit.require("torch")
    return training(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    kit.require("torch")
    return training(kit, np.float32)


def training(kit: Kit, dtype: type) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(x.astype(dtype), y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
