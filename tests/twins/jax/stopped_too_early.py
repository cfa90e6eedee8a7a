"""One epoch: the loss had only begun to fall."""

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, steps=60)


def healthy(kit: Kit) -> Training:
    return _training(kit, steps=2000)


def _training(kit: Kit, steps: int) -> Training:
    model = kit.mlp(64, 32, 10)
    optimiser = kit.optimiser(model, "adam", lr=1e-3)
    return Training(Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), optimiser), steps)
