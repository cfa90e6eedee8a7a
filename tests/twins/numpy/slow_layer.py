"""Rows are brought to length one: one after the other in a Python loop, or all at once."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.kits.numpy_layers import Layer
from tests.material import digits


class UnitLength(Layer):
    def __init__(self, one_by_one: bool) -> None:
        super().__init__()
        self.one_by_one = one_by_one

    def forward(self, x: np.ndarray) -> np.ndarray:
        if self.one_by_one:
            self.norm = np.stack([np.sqrt((row**2).sum()) for row in x])[:, None]
            self.y = np.stack([row / np.sqrt((row**2).sum()) for row in x])
        else:
            self.norm = np.sqrt((x**2).sum(1, keepdims=True))
            self.y = x / self.norm
        return 8 * self.y

    def backward(self, grad: np.ndarray) -> np.ndarray:
        return 8 * (grad - self.y * (grad * self.y).sum(1, keepdims=True)) / self.norm


def sick(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=True)


def healthy(kit: Kit) -> Subject:
    return _subject(kit, one_by_one=False)


def _subject(kit: Kit, one_by_one: bool) -> Subject:
    model = kit.sequential(kit.linear(64, 64), UnitLength(one_by_one), kit.activation("relu"), kit.linear(64, 10))
    loader = kit.loader(*digits(), batch_size=256)
    return Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-3))
