"""Accuracy of each epoch: the right answers are counted on from epoch to epoch, or from zero."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _training(kit, reset=False)


def healthy(kit: Kit) -> Loop:
    return _training(kit, reset=True)


def _training(kit: Kit, reset: bool) -> Loop:
    model = kit.mlp(64, 32, 10)
    optimiser = kit.optimiser(model, "adam", lr=2e-3)
    criterion, loader = kit.loss("cross-entropy"), kit.loader(*digits())

    def run(w: Any) -> None:
        right = 0
        for _ in range(8):
            samples = 0
            if reset:
                right = 0
            for x, y in loader:
                output = model.forward(x)
                _, gradient = criterion(output, y)
                optimiser.step(model.backward(gradient))
                right += int((output.argmax(1) == y).sum())
                samples += len(y)
            w.log(accuracy=right / samples)

    return Loop(model, [optimiser], run)
