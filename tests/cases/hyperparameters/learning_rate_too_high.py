"""Sgd at 50: the first step leaps over everything, and none comes back."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, lr=50.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, lr=0.3)


def _training(kit: Kit, lr: float) -> Subject:
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=lr))
