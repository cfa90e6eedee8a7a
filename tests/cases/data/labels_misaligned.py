"""Digits with their own classes, or with the classes shuffled while the images stayed."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, order: np.ndarray) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 64, 10)
    return Subject(model, kit.loader(x, y[order]), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, np.random.default_rng(0).permutation(len(digits()[1])))


def healthy(kit: Kit) -> Subject:
    return training(kit, np.arange(len(digits()[1])))
