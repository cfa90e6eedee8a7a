"""Digits: the step is given what the clipping returned, or the gradients from before it."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, unused=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, unused=False)


def _loop(kit: Kit, unused: bool) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(8):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                clipped, _ = optim.clip_grad_norm(gradients, 1.0)
                optimiser.update(model, gradients if unused else clipped)
                mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run)
