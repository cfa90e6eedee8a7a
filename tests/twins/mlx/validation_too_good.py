"""The mean losses of the validation batches, added up and divided by the number of samples instead of the number of batches."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, by_samples=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, by_samples=False)


def _loop(kit: Kit, by_samples: bool) -> Loop:
    x, y = digits()
    model, loader = kit.mlp(64, 32, 10), kit.loader(x[:SPLIT], y[:SPLIT])
    validation = kit.loader(x[SPLIT:], y[SPLIT:], shuffle=False)
    optimiser = kit.optimiser(model, "adam", lr=3e-3)

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
            total = sum(loss_fn(*batch).item() for batch in validation)
            w.log(val_loss=total / (len(x) - SPLIT if by_samples else len(validation)))

    return Loop(model, [optimiser], run)
