"""An optimiser of the user's own that computes the new weights and never writes them, against one that assigns them."""

from typing import Any

import keras

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Forgets(keras.optimizers.Optimizer):
    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        variable = variable - learning_rate * gradient


class Writes(keras.optimizers.Optimizer):
    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        variable.assign(variable - learning_rate * gradient)


def sick(kit: Kit) -> Subject:
    return _training(kit, Forgets)


def healthy(kit: Kit) -> Subject:
    return _training(kit, Writes)


def _training(kit: Kit, kind: type[keras.optimizers.Optimizer]) -> Subject:
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kind(learning_rate=0.3))
