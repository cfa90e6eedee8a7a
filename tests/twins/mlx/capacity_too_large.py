"""Sixty thousand parameters for a hundred patients: every one of them is known by heart, no rule is learned."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes

PATIENTS = 100


def sick(kit: Kit) -> Subject:
    return _training(kit, width=256)


def healthy(kit: Kit) -> Subject:
    return _training(kit, width=8)


def _training(kit: Kit, width: int) -> Subject:
    x, y = diabetes()
    order = np.random.default_rng(0).permutation(len(x))
    few, others = order[:PATIENTS], order[PATIENTS:]
    model = kit.mlp(10, width, width, 1)
    optimiser = kit.optimiser(model, "adam", lr=3e-3)
    validation = kit.loader(x[others], y[others], shuffle=False)
    return Subject(model, kit.loader(x[few], y[few]), kit.loss("mse"), optimiser, validation)
