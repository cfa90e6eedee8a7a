"""A decay of 0.3 where 3e-4 is meant: the weights shrink faster than the gradient can build them up."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, weight_decay=0.3)


def healthy(kit: Kit) -> Subject:
    return _training(kit, weight_decay=3e-4)


def _training(kit: Kit, weight_decay: float) -> Subject:
    model = kit.mlp(64, 32, 10)
    optimiser = kit.optimiser(model, "sgd", lr=0.1, weight_decay=weight_decay)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser)
