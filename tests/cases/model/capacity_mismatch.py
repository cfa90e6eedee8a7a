"""Forty-five wines and a network: of a million parameters, or of three hundred."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import wine


def training(kit: Kit, *widths: int) -> Subject:
    x, y = wine()
    model = kit.mlp(13, *widths, 3)
    train = kit.loader(x[::4], y[::4], batch_size=15)
    return Subject(model, train, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, 1024, 1024)


def healthy(kit: Kit) -> Subject:
    return training(kit, 32)
