"""A tenth, divided as whole numbers: 1 // 10 is 0, and so is the learning rate."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, lr=1 // 10)


def healthy(kit: Kit) -> Subject:
    return _training(kit, lr=1 / 10)


def _training(kit: Kit, lr: float) -> Subject:
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=lr))
