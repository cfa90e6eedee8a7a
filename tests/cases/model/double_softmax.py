"""Digits with cross-entropy, which applies softmax itself: on probabilities, and on raw scores."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.sequential(kit.mlp(64, 64, 10), kit.layer("softmax", 1)))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.mlp(64, 64, 10))


def _training(kit: Kit, model: object) -> Subject:
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
