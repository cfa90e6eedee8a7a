"""A rate that is to shrink tenfold every ten epochs, by a schedule of optax that counts steps."""

from typing import Any

import optax
from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
EPOCHS = 12


def sick(kit: Kit) -> Loop:
    return _loop(kit, steps_an_epoch=1)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, steps_an_epoch=57)


def _loop(kit: Kit, steps_an_epoch: int) -> Loop:
    model, criterion, loader = kit.mlp(64, 32, 10), kit.loss("cross-entropy"), kit.loader(*digits())
    schedule = optax.exponential_decay(3e-3, transition_steps=10 * steps_an_epoch, decay_rate=0.1, staircase=True)
    optimiser = nnx.Optimizer(model, optax.adam(schedule), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
            optimiser.update(model, gradients)
            return loss

        for _ in range(EPOCHS):
            for x, y in loader:
                step(model, optimiser, x, y)

    return Loop(model, [optimiser], run)
