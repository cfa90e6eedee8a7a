"""Disease progression that was not recorded for some patients: kept as NaN, or left out."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes


def sick(kit: Kit) -> Subject:
    x, y = diabetes()
    y = y.copy()
    y[_unrecorded(len(y))] = np.nan
    return training(kit, x, y)


def healthy(kit: Kit) -> Subject:
    x, y = diabetes()
    known = ~_unrecorded(len(y))
    return training(kit, x[known], y[known])


def _unrecorded(samples: int) -> np.ndarray:
    return np.random.default_rng(0).random(samples) < 0.05


def training(kit: Kit, x: np.ndarray, y: np.ndarray) -> Subject:
    model = kit.mlp(10, 32, 1)
    return Subject(model, kit.loader(x, y), kit.loss("mse"), kit.optimiser(model, "adam", lr=5e-3))
