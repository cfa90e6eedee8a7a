"""A head whose bias is sure of the first digit before it has seen one, and a head without such a prejudice."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, prejudice=12.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, prejudice=0.0)


def _training(kit: Kit, prejudice: float) -> Subject:
    head = kit.linear(64, 10)
    kit.set_weights(head, kit.weights(head), np.array([prejudice, *[0.0] * 9], dtype=np.float32))
    model = kit.sequential(kit.linear(64, 64), kit.activation("relu"), head)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
