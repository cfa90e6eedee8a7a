"""A tanh with a hand-written backward: 1 + y² instead of 1 - y²."""

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, right=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, right=True)


def _training(kit: Kit, right: bool) -> Subject:
    model = kit.sequential(
        kit.linear(64, 48),
        kit.layer("tanh_by_hand", right),
        kit.linear(48, 48),
        kit.layer("tanh_by_hand", right),
        kit.linear(48, 10),
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
