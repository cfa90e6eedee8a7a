"""Digits through dropout: nine units in ten thrown away, or two."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, p: float) -> Subject:
    model = kit.sequential(kit.linear(64, 128), kit.activation("relu"), kit.layer("dropout", p), kit.linear(128, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, p=0.9)


def healthy(kit: Kit) -> Subject:
    return training(kit, p=0.2)
