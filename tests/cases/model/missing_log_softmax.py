"""Digits with NLL, which takes log-probabilities: on raw scores, and on log-softmax."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.mlp(64, 64, 10))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.sequential(kit.mlp(64, 64, 10), kit.layer("log_softmax", 1)))


def _training(kit: Kit, model: object) -> Subject:
    return Subject(model, kit.loader(*digits()), kit.loss("nll"), kit.optimiser(model, "adam", lr=3e-3))
