"""A running total of the loss: of tensors it keeps the graph of every step, of numbers it keeps a number."""

from typing import Any

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, keeps_graph=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, keeps_graph=False)


def _loop(kit: Kit, keeps_graph: bool) -> Loop:
    kit.require("torch")
    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    optimiser, loader = kit.optimiser(model, lr=3e-3), kit.loader(*digits())

    def run(w: Any) -> None:
        total = 0.0
        for _ in range(6):
            for x, y in loader:
                optimiser.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimiser.step()
                total += loss if keeps_graph else loss.item()

    return Loop(model, [optimiser], run)
