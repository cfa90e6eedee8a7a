"""Digits and Adam: in one of the loops nobody wrote optimiser.step(gradients)."""

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, step=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, step=True)


def _loop(kit: Kit, step: bool) -> Loop:
    model, loader, criterion = kit.mlp(64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: object) -> None:
        for _ in range(4):
            for x, y in loader:
                _, gradient = criterion(model.forward(x), y)
                gradients = model.backward(gradient)
                if step:
                    optimiser.step(gradients)

    return Loop(model, [optimiser], run)
