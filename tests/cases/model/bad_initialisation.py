"""A digits MLP whose weights all start at zero, against the framework's own initialisation."""

from itertools import pairwise

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits

WIDTHS = (64, 64, 32, 10)


def sick(kit: Kit) -> Subject:
    return _training(kit, zero=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, zero=False)


def _training(kit: Kit, zero: bool) -> Subject:
    layers = [kit.linear(a, b) for a, b in pairwise(WIDTHS)]
    for layer, inputs, outputs in zip(layers, WIDTHS, WIDTHS[1:], strict=False):
        if zero:
            kit.set_weights(layer, np.zeros((outputs, inputs), np.float32), np.zeros(outputs, np.float32))
    model = kit.sequential(layers[0], kit.activation("relu"), layers[1], kit.activation("relu"), layers[2])
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
