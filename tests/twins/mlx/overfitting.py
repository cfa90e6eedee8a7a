"""A wide model and few patients: after some epochs it learns them by heart, unless somebody stops it."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import diabetes

SOURCE = "watch"
SPLIT = 300


def sick(kit: Kit) -> Loop:
    return _loop(kit, epochs=60)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, epochs=8)


def _loop(kit: Kit, epochs: int) -> Loop:
    x, y = (mx.array(a) for a in diabetes())
    model = kit.mlp(10, 64, 64, 1)
    loader = kit.loader(np.array(x[:SPLIT]), np.array(y[:SPLIT]))
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def loss_fn(inputs: mx.array, target: mx.array) -> mx.array:
        return nn.losses.mse_loss(model(inputs), target)

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(epochs):
            model.train()
            for batch in loader:
                loss, gradients = loss_and_grad(*batch)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)
            model.eval()
            w.log(val_loss=loss_fn(x[SPLIT:], y[SPLIT:]).item())

    return Loop(model, [optimiser], run)
