"""A rate that is to shrink by a tenth at the end of every epoch, and is shrunk after every batch."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, every_batch=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, every_batch=False)


def _loop(kit: Kit, every_batch: bool) -> Loop:
    model = kit.mlp(64, 32, 10)
    loss, loader = kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def run(w: Any) -> None:
        for _ in range(EPOCHS):
            for x, y in loader:
                _, gradient = loss(model.forward(x), y)
                optimiser.step(model.backward(gradient))
                if every_batch:
                    optimiser.lr *= 0.9
            if not every_batch:
                optimiser.lr *= 0.9

    return Loop(model, [optimiser], run)
