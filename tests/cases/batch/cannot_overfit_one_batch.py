"""Ten digits through a single unit: one number a sample cannot carry which of the ten it is; sixteen can."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.mlp(64, 32, 1, 10, activation="tanh"))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.mlp(64, 32, 16, 10, activation="tanh"))


def _training(kit: Kit, model: Any) -> Subject:
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-2))
