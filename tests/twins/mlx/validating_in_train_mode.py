"""Digits with dropout and batch-norm: the validation after every epoch calls model.eval(), or forgets it."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, evaluates=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, evaluates=True)


def _loop(kit: Kit, evaluates: bool) -> Loop:
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(4):
            model.train()
            for batch in loader:
                loss, gradients = loss_and_grad(*batch)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)
            if evaluates:
                model.eval()
            for batch in held_out:
                mx.eval(loss_fn(*batch))

    return Loop(model, [optimiser], run)
