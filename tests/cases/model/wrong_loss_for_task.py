"""Which of ten digits it is: as a number to come close to, and as one class of ten."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 64, 1)
    train = kit.loader(x, y[:, None].astype(np.float32))
    return Subject(model, train, kit.loss("mse"), kit.optimiser(model, "adam", lr=3e-3))


def healthy(kit: Kit) -> Subject:
    model = kit.mlp(64, 64, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
