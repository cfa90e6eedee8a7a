"""Digits split into training and validation by one shuffled order, or by two that know nothing of each other."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, second_seed: int) -> Subject:
    x, y = digits()
    first, second = (np.random.default_rng(seed).permutation(len(x)) for seed in (0, second_seed))
    train, validation = first[360:], second[:360]
    model = kit.mlp(64, 64, 10)
    return Subject(
        model,
        kit.loader(x[train], y[train]),
        kit.loss("cross-entropy"),
        kit.optimiser(model, "adam", lr=1e-3),
        kit.loader(x[validation], y[validation], shuffle=False),
    )


def sick(kit: Kit) -> Subject:
    return training(kit, second_seed=1)


def healthy(kit: Kit) -> Subject:
    return training(kit, second_seed=0)
