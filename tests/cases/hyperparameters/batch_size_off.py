"""One digit a step: each gradient points elsewhere, and it takes some seventy of them to see where the loss falls."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, batch_size=1)


def healthy(kit: Kit) -> Subject:
    return _training(kit, batch_size=32)


def _training(kit: Kit, batch_size: int) -> Subject:
    model = kit.mlp(64, 32, 10)
    train = kit.loader(*digits(), batch_size=batch_size)
    return Subject(model, train, kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.05))
