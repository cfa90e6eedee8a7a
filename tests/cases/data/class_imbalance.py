"""Malignant and benign tumours; the sick set keeps only every twenty-first malignant one."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer


def sick(kit: Kit) -> Subject:
    return training(kit, every=21)


def healthy(kit: Kit) -> Subject:
    return training(kit, every=1)


def training(kit: Kit, every: int) -> Subject:
    x, y = cancer()
    malignant = np.flatnonzero(y == 0)[::every]
    rows = np.sort(np.concatenate([malignant, np.flatnonzero(y == 1)]))
    model = kit.mlp(30, 32, 2)
    loader = kit.loader(x[rows], y[rows])
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
