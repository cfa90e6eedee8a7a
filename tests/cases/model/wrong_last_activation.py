"""Standardised targets, half of them negative, from a network that ends in a ReLU and from one that ends in a linear layer."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import diabetes


def training(kit: Kit, *end: str) -> Subject:
    model = kit.sequential(kit.linear(10, 32), kit.activation("relu"), kit.linear(32, 1), *map(kit.activation, end))
    return Subject(model, kit.loader(*diabetes()), kit.loss("mse"), kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, "relu")


def healthy(kit: Kit) -> Subject:
    return training(kit)
