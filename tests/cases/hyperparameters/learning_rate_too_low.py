"""Sgd at a millionth: after a hundred and fifty steps the loss is where it was."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, lr=1e-6)


def healthy(kit: Kit) -> Subject:
    return _training(kit, lr=0.3)


def _training(kit: Kit, lr: float) -> Subject:
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=lr))
