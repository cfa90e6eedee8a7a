"""Weights that are put back after every step, by a snapshot meant for the evaluation alone; and the same without."""

from itertools import islice, repeat
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, puts_back=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, puts_back=False)


def _loop(kit: Kit, puts_back: bool) -> Loop:
    model, loader = kit.mlp(64, 64, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        best = model.parameters()
        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 400):
            if puts_back:
                model.update(best)
            loss, gradients = loss_and_grad(x, y)
            optimiser.update(model, gradients)
            mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run, {"every": 10})
