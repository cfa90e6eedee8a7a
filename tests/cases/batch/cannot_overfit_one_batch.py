"""Scores that are normalised after the last layer can never be far apart: no class gets a probability near one."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.linear(32, 10), kit.layer("standardise", 1))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.layer("standardise", 1), kit.linear(32, 10))


def _training(kit: Kit, *end: Any) -> Subject:
    model = kit.sequential(kit.linear(64, 32), kit.activation("relu"), *end)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-2))
