"""The logarithm of pixels: log(x) of a black pixel is −inf, log(x + 1) is finite."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, offset=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, offset=1.0)


def _training(kit: Kit, offset: float) -> Subject:
    model = kit.sequential(kit.layer("log", offset), kit.mlp(64, 64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
