"""Layers of float64, because the digits are as NumPy made them; or both in single precision."""

import keras
import numpy as np
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _subject(kit, "float64")


def healthy(kit: Kit) -> Subject:
    return _subject(kit, "float32")


def _subject(kit: Kit, dtype: str) -> Subject:
    x, y = digits()
    model = keras.Sequential(
        [keras.Input((64,), dtype=dtype), layers.Dense(32, activation="relu", dtype=dtype), layers.Dense(10, dtype=dtype)]
    )
    loader = kit.loader(x.astype(np.dtype(dtype)), y)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
