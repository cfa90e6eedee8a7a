"""A table in which one measurement is missing for some rows: left as NaN, or filled with the column's mean."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer

COLUMN = 7


def sick(kit: Kit) -> Subject:
    return training(kit, np.nan)


def healthy(kit: Kit) -> Subject:
    return training(kit, 0.0)


def training(kit: Kit, missing: float) -> Subject:
    x, y = cancer()
    x = x.copy()
    x[np.random.default_rng(0).random(len(x)) < 0.05, COLUMN] = missing
    model = kit.mlp(30, 32, 2)
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
