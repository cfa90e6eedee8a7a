"""Log-softmax over the batch (axis 0), and over the classes (axis 1)."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, axis=0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, axis=1)


def _training(kit: Kit, axis: int) -> Subject:
    model = kit.sequential(kit.mlp(64, 64, 10), kit.layer("log_softmax", axis))
    return Subject(model, kit.loader(*digits()), kit.loss("nll"), kit.optimiser(model, "adam", lr=3e-3))
