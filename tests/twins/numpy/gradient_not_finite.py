"""A penalty on the length of a shift that starts at zero: its derivative divides by that length, or guards against zero."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Shifted:
    """Adds a learned shift, and 1e-3 times the length of that to the loss."""

    def __init__(self, body: Any, criterion: Any, guarded: bool) -> None:
        self.body, self.criterion, self.guarded = body, criterion, guarded
        self.shift = np.zeros(10, np.float32)

    def parameters(self) -> list[tuple[str, np.ndarray]]:
        return [*self.body.parameters(), ("shift", self.shift)]

    def forward(self, x: np.ndarray) -> np.ndarray:
        return self.body.forward(x) + self.shift

    def compute_loss(self, x: np.ndarray, y: np.ndarray) -> float:
        value, self.gradient = self.criterion(self.forward(x), y)
        return value + 1e-3 * float(np.linalg.norm(self.shift))

    def backward(self) -> dict[str, np.ndarray]:
        length = np.linalg.norm(self.shift)
        if self.guarded:
            length = max(length, np.float32(1e-8))
        penalty = np.float32(1e-3) * self.shift / length
        return {**self.body.backward(self.gradient), "shift": self.gradient.sum(0) + penalty}


def training(kit: Kit, guarded: bool) -> Subject:
    model = Shifted(kit.mlp(64, 64, 10), kit.loss("cross-entropy"), guarded)
    return Subject(model, kit.loader(*digits()), optimizer=kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, guarded=False)


def healthy(kit: Kit) -> Subject:
    return training(kit, guarded=True)
