"""A learning rate that jumps for a few steps in the middle of the training switches most ReLUs off for good."""

from itertools import islice, repeat
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, jump=25.0)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, jump=1.0)


def _loop(kit: Kit, jump: float) -> Loop:
    model, loader = kit.mlp(64, 64, 32, 10), kit.loader(*digits())
    optimiser = optim.SGD(0.1, momentum=0.9)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for i, (x, y) in enumerate(islice((batch for epoch in repeat(loader) for batch in epoch), 640)):
            optimiser.learning_rate = 0.1 * (jump if 250 <= i < 254 else 1.0)
            loss, gradients = loss_and_grad(x, y)
            optimiser.update(model, gradients)
            mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run, {"every": 4})
