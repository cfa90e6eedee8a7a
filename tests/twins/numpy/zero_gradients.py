"""A code between two layers that is rounded to quarters, whose derivative is zero, or that stays as it is."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.kits.numpy_layers import Layer
from tests.material import digits

SOURCE = "watch"


class Round(Layer):
    def forward(self, x: np.ndarray) -> np.ndarray:
        return np.round(4 * x) / 4

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return np.zeros_like(grad)


def training(kit: Kit, rounds: bool) -> Training:
    code = [Round()] if rounds else []
    model = kit.sequential(kit.linear(64, 64), kit.activation("tanh"), kit.linear(64, 32), *code, kit.linear(32, 10))
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
    return Training(subject, steps=240, options={"every": 10})


def sick(kit: Kit) -> Training:
    return training(kit, rounds=True)


def healthy(kit: Kit) -> Training:
    return training(kit, rounds=False)
