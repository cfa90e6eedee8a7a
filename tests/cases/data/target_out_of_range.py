"""Ten digits counted from one to ten, for a model whose classes run from zero to nine."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return training(kit, first=1)


def healthy(kit: Kit) -> Subject:
    return training(kit, first=0)


def training(kit: Kit, first: int) -> Subject:
    x, y = digits()
    model = kit.mlp(64, 32, 10)
    return Subject(model, kit.loader(x, y + first), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
