"""Four batches to a step: each loss goes backward whole, or a quarter of it."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PARTS = 4


def sick(kit: Kit) -> Loop:
    return _training(kit, divided=False)


def healthy(kit: Kit) -> Loop:
    return _training(kit, divided=True)


def _training(kit: Kit, divided: bool) -> Loop:
    kit.require("torch")
    model = kit.mlp(64, 64, 10)
    optimiser = kit.optimiser(model, "sgd", lr=0.1)
    criterion, loader = kit.loss("cross-entropy"), kit.loader(*digits())

    def run(w: Any) -> None:
        for _ in range(12):
            for number, (x, y) in enumerate(loader, start=1):
                loss = criterion(model(x), y)
                if divided:
                    loss = loss / PARTS
                loss.backward()
                if number % PARTS == 0:
                    optimiser.step()
                    optimiser.zero_grad()

    return Loop(model, [optimiser], run)
