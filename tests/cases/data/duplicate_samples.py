"""Digits, a fifth of which were read in three times, and digits read in once."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, times: int) -> Subject:
    x, y = digits()
    rows = np.concatenate([np.arange(len(x)), *[np.arange(len(x) // 5)] * (times - 1)])
    model = kit.mlp(64, 64, 10)
    return Subject(model, kit.loader(x[rows], y[rows]), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, times=3)


def healthy(kit: Kit) -> Subject:
    return training(kit, times=1)
