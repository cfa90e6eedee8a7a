"""A running total of the loss: of arrays that nobody computes it keeps the graph of every step, of numbers it keeps a number."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, keeps_graph=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, keeps_graph=False)


def _loop(kit: Kit, keeps_graph: bool) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        total: Any = 0.0
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(6):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                mx.eval(model.parameters(), optimiser.state)
                total += loss if keeps_graph else loss.item()

    return Loop(model, [optimiser], run)
