"""Digits split into training and validation: cleanly, or after a fifth of the set had been copied for good measure."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, copied: int) -> Subject:
    x, y = digits()
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(len(x)), rng.choice(len(x), copied, replace=False)])
    rows = rng.permutation(rows)
    validation, train = rows[:360], rows[360:]
    model = kit.mlp(64, 64, 10)
    return Subject(
        model,
        kit.loader(x[train], y[train]),
        kit.loss("cross-entropy"),
        kit.optimiser(model, "adam", lr=1e-3),
        kit.loader(x[validation], y[validation], shuffle=False),
    )


def sick(kit: Kit) -> Subject:
    return training(kit, copied=len(digits()[0]) // 5)


def healthy(kit: Kit) -> Subject:
    return training(kit, copied=0)
