"""Accuracy of each epoch: the right answers are counted on from epoch to epoch, or from zero."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, reset=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, reset=True)


def _loop(kit: Kit, reset: bool) -> Loop:
    model, loader = kit.mlp(64, 32, 10), kit.loader(*digits())
    optimiser = kit.optimiser(model, "adam", lr=2e-3)

    def loss_fn(x: mx.array, y: mx.array) -> tuple[mx.array, mx.array]:
        scores = model(x)
        return nn.losses.cross_entropy(scores, y, reduction="mean"), scores

    def run(w: Any) -> None:
        loss_and_grad = nn.value_and_grad(model, loss_fn)
        right = 0
        for _ in range(8):
            samples = 0
            if reset:
                right = 0
            for x, y in loader:
                (_, scores), gradients = loss_and_grad(x, y)
                optimiser.update(model, gradients)
                mx.eval(model.parameters(), optimiser.state)
                right += (scores.argmax(1) == y).sum().item()
                samples += len(y)
            w.log(accuracy=right / samples)

    return Loop(model, [optimiser], run)
