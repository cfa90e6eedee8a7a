"""An optimiser that computes new weights and returns the old ones, against one that returns the new ones."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Forgets:
    def __init__(self, lr: float) -> None:
        self.lr = lr

    def update_params(self, params: dict[str, Any], gradients: dict[str, Any]) -> dict[str, Any]:
        for key, weight in params.items():
            weight = weight - self.lr * gradients[key]
        return params


class Writes(Forgets):
    def update_params(self, params: dict[str, Any], gradients: dict[str, Any]) -> dict[str, Any]:
        return {key: weight - self.lr * gradients[key] for key, weight in params.items()}


def sick(kit: Kit) -> Subject:
    return _training(kit, Forgets(0.3))


def healthy(kit: Kit) -> Subject:
    return _training(kit, Writes(0.3))


def _training(kit: Kit, optimiser: Forgets) -> Subject:
    return Subject(kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
