"""Batch-norm in a digits MLP: fed two samples at a time, and fed 32."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, batch_size: int) -> Subject:
    model = kit.sequential(kit.linear(64, 32, bias=False), kit.layer("batchnorm", 32), kit.activation("relu"), kit.linear(32, 10))
    x, y = digits()
    train = kit.loader(x[:640], y[:640], batch_size=batch_size)
    return Subject(model, train, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, batch_size=2)


def healthy(kit: Kit) -> Subject:
    return training(kit, batch_size=32)
