"""Biases that start at minus five switch every ReLU of a layer off; at zero they do not."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, bias=-5.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, bias=0.0)


def _training(kit: Kit, bias: float) -> Subject:
    hidden = kit.linear(64, 32)
    kit.set_weights(hidden, kit.weights(hidden), np.full(32, bias, np.float32))
    model = kit.sequential(kit.linear(64, 64), kit.activation("relu"), hidden, kit.activation("relu"), kit.linear(32, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
