"""A model that is trained on from a checkpoint: saved with the model around it, or what is inside."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4


class Wrapped(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def __call__(self, x: mx.array) -> mx.array:
        return self.model(x)


def sick(kit: Kit) -> Loop:
    return _loop(kit, wrapped=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, wrapped=False)


def _loop(kit: Kit, wrapped: bool) -> Loop:
    before = Wrapped(kit.mlp(64, 32, 10))
    weights = tree_flatten((before if wrapped else before.model).parameters())
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, lr=3e-3)

    def loss_fn(x: mx.array, y: mx.array) -> mx.array:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    def run(w: Any) -> None:
        model.load_weights(weights)
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        for _ in range(PASSES):
            for x, y in loader:
                loss, gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                mx.eval(loss, model.parameters(), optimiser.state)

    return Loop(model, [optimiser], run, fails=wrapped)
