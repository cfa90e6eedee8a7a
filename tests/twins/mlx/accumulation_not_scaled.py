"""Four batches to a step: their gradients are added up, or added up and divided by four."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PARTS = 4


def sick(kit: Kit) -> Loop:
    return _loop(kit, divided=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, divided=True)


def _loop(kit: Kit, divided: bool) -> Loop:
    model, loader = kit.mlp(64, 64, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, "sgd", lr=0.1)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        total = None
        for _ in range(30):
            for number, (x, y) in enumerate(loader, start=1):
                loss, gradients = loss_and_grad(x, y)
                total = gradients if total is None else tree_map(mx.add, total, gradients)
                mx.eval(loss, total)
                if number % PARTS == 0:
                    optimiser.update(model, tree_map(lambda g: g / PARTS, total) if divided else total)
                    mx.eval(model.parameters(), optimiser.state)
                    total = None

    return Loop(model, [optimiser], run)
