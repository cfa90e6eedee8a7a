"""Digits and Adam: in one of the loops nobody wrote optimizer.update()."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, step=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, step=True)


def _loop(kit: Kit, step: bool) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(4):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                if step:
                    optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run)
