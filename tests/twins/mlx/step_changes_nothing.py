"""An optimiser of the user's own that computes the new weights and hands back the old ones."""

import mlx.core as mx
import mlx.optimizers as optim

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Descent(optim.Optimizer):
    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self._maybe_schedule("learning_rate", learning_rate)

    def init_single(self, parameter: mx.array, state: dict) -> None: ...


class Forgets(Descent):
    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        parameter - self.learning_rate * gradient
        return parameter


class Returns(Descent):
    def apply_single(self, gradient: mx.array, parameter: mx.array, state: dict) -> mx.array:
        return parameter - self.learning_rate * gradient


def sick(kit: Kit) -> Subject:
    return _training(kit, Forgets(0.3))


def healthy(kit: Kit) -> Subject:
    return _training(kit, Returns(0.3))


def _training(kit: Kit, optimiser: Descent) -> Subject:
    return Subject(kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
