"""A rate that falls along a cosine: made for three epochs, or for as many as are trained."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, planned=3)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, planned=EPOCHS)


def _loop(kit: Kit, planned: int) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    schedule = optim.cosine_decay(3e-3, planned * len(loader))
    optimiser = optim.Adam(schedule, bias_correction=True)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(EPOCHS):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run)
