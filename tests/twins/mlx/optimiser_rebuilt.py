"""Digits and Adam: made once, or again at the start of every epoch."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, anew=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, anew=False)


def _loop(kit: Kit, anew: bool) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    first = kit.optimiser(model, "adam", lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        optimiser = first
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(6):
            if anew:
                optimiser = kit.optimiser(model, "adam", lr=3e-3)
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [first], run)
