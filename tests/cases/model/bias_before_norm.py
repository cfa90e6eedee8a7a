"""Batch-norm after a linear layer: with a bias that it removes, and without."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, bias: bool) -> Subject:
    model = kit.sequential(kit.linear(64, 64, bias=bias), kit.layer("batchnorm", 64), kit.activation("relu"), kit.linear(64, 10))
    train = kit.loader(*digits(), batch_size=32)
    return Subject(model, train, kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, bias=True)


def healthy(kit: Kit) -> Subject:
    return training(kit, bias=False)
