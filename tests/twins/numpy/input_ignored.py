"""A forward that builds its features from the shape of the input alone, against one that reads the input."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer
from tests.material import digits


class Ones(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.ones_like(x)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return np.zeros_like(grad)


def sick(kit: Kit) -> Subject:
    return _training(kit, [Ones()])


def healthy(kit: Kit) -> Subject:
    return _training(kit, [])


def _training(kit: Kit, first: list[Layer]) -> Subject:
    model = kit.sequential(*first, kit.linear(64, 64), kit.activation("relu"), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
