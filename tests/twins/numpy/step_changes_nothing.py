"""An optimiser that computes the new weights and never writes them: `array = array - lr * gradient`."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Forgets:
    def __init__(self, params: list[tuple[str, np.ndarray]], lr: float) -> None:
        self.params, self.lr = params, lr

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, array in self.params:
            array = array - self.lr * grads[name]


class Writes(Forgets):
    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, array in self.params:
            array -= self.lr * grads[name]


def sick(kit: Kit) -> Subject:
    return _training(kit, Forgets)


def healthy(kit: Kit) -> Subject:
    return _training(kit, Writes)


def _training(kit: Kit, kind: type[Forgets]) -> Subject:
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kind(model.parameters(), lr=0.3))
