"""Digits through tanh: weights ten times too large pin every unit to an end, and weights of the usual size do not."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def training(kit: Kit, factor: float) -> Subject:
    first, second = kit.linear(64, 64), kit.linear(64, 64)
    for layer in (first, second):
        kit.set_weights(layer, factor * kit.weights(layer))
    model = kit.sequential(first, kit.activation("tanh"), second, kit.activation("tanh"), kit.linear(64, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, factor=8.0)


def healthy(kit: Kit) -> Subject:
    return training(kit, factor=1.0)
