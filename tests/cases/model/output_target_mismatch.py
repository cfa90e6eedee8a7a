"""Ten columns of one-hot targets under squared error: a last layer of eight units does not fit, one of ten does."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, units=8)


def healthy(kit: Kit) -> Subject:
    return _training(kit, units=10)


def _training(kit: Kit, units: int) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 64, units)
    train = kit.loader(x, np.eye(10, dtype=np.float32)[y])
    return Subject(model, train, kit.loss("mse"), kit.optimiser(model, "adam", lr=3e-3))
