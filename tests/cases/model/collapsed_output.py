"""Rows of digits through a norm, then averaged: over the features, whose mean the norm has just made zero, or over the rows."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, axis: int) -> Subject:
    left = {1: 32, 2: 8}[axis]
    model = kit.sequential(
        kit.layer("reshape", -1, 8, 8),
        kit.linear(8, 32),
        kit.activation("relu"),
        kit.linear(32, 32),
        kit.layer("standardise", 2),
        kit.layer("mean", axis),
        kit.linear(left, 64),
        kit.activation("relu"),
        kit.linear(64, 10),
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, axis=2)


def healthy(kit: Kit) -> Subject:
    return training(kit, axis=1)
