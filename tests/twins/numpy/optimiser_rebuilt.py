"""Digits and Adam: made once, or again at the start of every epoch."""

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, anew=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, anew=False)


def _loop(kit: Kit, anew: bool) -> Loop:
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    first = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: object) -> None:
        optimiser = first
        for _ in range(6):
            if anew:
                optimiser = kit.optimiser(model, "adam", lr=3e-3)
            for x, y in loader:
                _, gradient = criterion(model.forward(x), y)
                optimiser.step(model.backward(gradient))

    return Loop(model, [first], run)
