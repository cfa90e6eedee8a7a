"""Tumours, once with a column that was filled in after the diagnosis: a ward number that follows from it."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer

WARDS = np.array([0.8, -1.2], np.float32)  # malignant, benign


def sick(kit: Kit) -> Subject:
    x, y = cancer()
    return training(kit, np.column_stack([x, WARDS[y]]), y)


def healthy(kit: Kit) -> Subject:
    return training(kit, *cancer())


def training(kit: Kit, x: np.ndarray, y: np.ndarray) -> Subject:
    model = kit.mlp(x.shape[1], 32, 2)
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
