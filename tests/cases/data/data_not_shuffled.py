"""Digits that lie sorted by class on disk, read as they lie or shuffled by the loader."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return training(kit, shuffle=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, shuffle=True)


def training(kit: Kit, shuffle: bool) -> Subject:
    x, y = digits()
    order = np.argsort(y, kind="stable")
    model = kit.mlp(64, 32, 10)
    loader = kit.loader(x[order], y[order], shuffle=shuffle)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
