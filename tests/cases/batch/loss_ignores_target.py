"""A mask that was meant to leave some targets out sets all of them to class 0."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, 0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, 1)


def _training(kit: Kit, mask: int) -> Subject:
    model = kit.mlp(64, 32, 32, 10)
    cross_entropy = kit.loss("cross-entropy")

    def masked(output: Any, target: Any) -> Any:
        return cross_entropy(output, target * mask)

    return Subject(model, kit.loader(*digits()), masked, kit.optimiser(model, "adam", lr=3e-3))
