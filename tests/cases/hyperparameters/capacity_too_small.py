"""How much a digit is worth, through a single unit: a handful of digits is learned by heart, two thousand are not."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, width=1)


def healthy(kit: Kit) -> Subject:
    return _training(kit, width=64)


def _training(kit: Kit, width: int) -> Subject:
    x, y = digits()
    worth = ((y - y.mean()) / y.std()).astype(np.float32)[:, None]
    model = kit.mlp(64, width, 1, activation="tanh")
    return Subject(model, kit.loader(x, worth), kit.loss("mse"), kit.optimiser(model, "adam", lr=1e-2))
