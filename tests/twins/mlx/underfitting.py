"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, decay=0.0)


def _loop(kit: Kit, decay: float) -> Loop:
    x, y = digits()
    model, loader = kit.mlp(64, 32, 10), kit.loader(x[:SPLIT], y[:SPLIT])
    held_out = mx.array(x[SPLIT:]), mx.array(y[SPLIT:])
    optimiser = kit.optimiser(model, "sgd", lr=0.1, weight_decay=decay)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(EPOCHS):
            model.train()
            for batch in loader:
                loss, gradients = loss_and_grad(*batch)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)
            model.eval()
            w.log(val_loss=loss_fn(*held_out).item())

    return Loop(model, [optimiser], run)
