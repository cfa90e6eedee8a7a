"""A margin loss whose hinge was forgotten: samples on the right side are pushed on for ever, ever faster."""

from typing import Any

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer


def sick(kit: Kit) -> Subject:
    return _training(kit, lambda gap: gap.mean())


def healthy(kit: Kit) -> Subject:
    return _training(kit, lambda gap: ((gap + abs(gap)) / 2).mean())


def _training(kit: Kit, hinge: Any) -> Subject:
    model = kit.mlp(30, 32, 32, 32, 1)
    x, y = cancer()
    side = (2 * y[:, None] - 1).astype(x.dtype)

    def margin(score: Any, target: Any) -> Any:
        return hinge(1 - score * target)

    return Subject(model, kit.loader(x, side), margin, kit.optimiser(model, "adam", lr=1e-2))
