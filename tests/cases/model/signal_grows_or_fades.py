"""Twelve ReLU layers on digits: with a gain of 2.4 too much each the signal explodes, with He's gain it keeps its size."""

from itertools import pairwise

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits

WIDTHS = (64, *[48] * 11, 10)


def sick(kit: Kit) -> Subject:
    return _training(kit, excess=2.4)


def healthy(kit: Kit) -> Subject:
    return _training(kit, excess=1.0)


def _training(kit: Kit, excess: float) -> Subject:
    rng = np.random.default_rng(0)
    layers = []
    for inputs, outputs in pairwise(WIDTHS):
        layer = kit.linear(inputs, outputs)
        gain = excess * np.sqrt(2 / inputs)
        kit.set_weights(layer, (gain * rng.normal(size=(outputs, inputs))).astype(np.float32), np.zeros(outputs, np.float32))
        layers += [layer, kit.activation("relu")]
    model = kit.sequential(*layers[:-1])
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=5e-4))
