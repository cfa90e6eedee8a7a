"""Sines of far too high a frequency: images that look alike get unrelated features, so no batch helps with the next."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, frequency=300.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, frequency=0.3)


def _training(kit: Kit, frequency: float) -> Subject:
    model = kit.sequential(
        kit.layer("waves", 64, 128, frequency), kit.linear(128, 32), kit.activation("relu"), kit.linear(32, 10)
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))
