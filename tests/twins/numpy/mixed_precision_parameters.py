"""A learned scale that np.ones makes in float64 turns every output into float64."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer
from tests.material import digits


class Scale(Layer):
    names = ("scale",)

    def __init__(self, width: int, dtype: type) -> None:
        super().__init__()
        self.scale = np.ones(width, dtype)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        return x * self.scale

    def backward(self, grad: np.ndarray) -> np.ndarray:
        self.gradients["scale"] = (grad * self.x).sum(0)
        return grad * self.scale


def training(kit: Kit, dtype: type) -> Subject:
    model = kit.sequential(kit.linear(64, 64), kit.activation("relu"), kit.linear(64, 10), Scale(10, dtype))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, np.float64)


def healthy(kit: Kit) -> Subject:
    return training(kit, np.float32)
