"""A learning rate that jumps for a few steps in the middle of the training switches most ReLUs off for good."""

from itertools import islice, repeat
from typing import Any

import optax
from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, jump=25.0)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, jump=1.0)


def _loop(kit: Kit, jump: float) -> Loop:
    model, loader, criterion = kit.mlp(64, 64, 32, 10), kit.loader(*digits()), kit.loss("cross-entropy")
    rate = optax.join_schedules([lambda n: 0.1, lambda n: 0.1 * jump, lambda n: 0.1], [250, 254])
    optimiser = nnx.Optimizer(model, optax.sgd(rate, momentum=0.9), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
            optimiser.update(model, gradients)
            return loss

        for x, y in islice((batch for epoch in repeat(loader) for batch in epoch), 640):
            step(model, optimiser, x, y)

    return Loop(model, [optimiser], run, {"every": 4})
