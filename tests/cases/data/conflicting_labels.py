"""Two annotators labelled fifty of the digits, and did not agree; or did."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, agree: bool) -> Subject:
    x, y = digits()
    again = np.arange(50)
    second = y[again] if agree else (y[again] + 1) % 10
    model = kit.mlp(64, 64, 10)
    train = kit.loader(np.concatenate([x, x[again]]), np.concatenate([y, second]))
    return Subject(model, train, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, agree=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, agree=True)
