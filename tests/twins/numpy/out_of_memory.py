"""Products of pixels as features: of two pixels, or of four, which takes 37 GB for a batch."""

import resource
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.kits.numpy_layers import Layer
from tests.material import digits

SOURCE = "watch"
PASSES = 16
# Some systems promise more memory than they have and kill who takes it: the sick one must be refused.
MOST = 24 << 30


class Products(Layer):
    def __init__(self, degree: int) -> None:
        super().__init__()
        self.degree = degree

    def forward(self, x: np.ndarray) -> np.ndarray:
        for _ in range(self.degree // 2):
            x = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return x

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return grad  # nothing before it is trained


def sick(kit: Kit) -> Loop:
    return _loop(kit, degree=4)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, degree=2)


def _loop(kit: Kit, degree: int) -> Loop:
    model, criterion = kit.sequential(Products(degree), kit.linear(64**2, 10)), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, "adam", lr=1e-3), kit.loader(*digits(), batch_size=600)

    def run(w: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST, hard))
        try:
            for _ in range(PASSES):
                for x, y in loader:
                    _, gradient = criterion(model.forward(x), y)
                    optimiser.step(model.backward(gradient))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return Loop(model, [optimiser], run, fails=degree == 4)
