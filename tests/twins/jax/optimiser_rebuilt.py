"""Digits and Adam: made once, or again at the start of every epoch."""

from typing import Any

from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, anew=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, anew=False)


def _loop(kit: Kit, anew: bool) -> Loop:
    model, criterion, loader = kit.mlp(64, 32, 10), kit.loss("cross-entropy"), kit.loader(*digits())
    tx = kit.optimiser(model, "adam", lr=3e-3)
    first = nnx.Optimizer(model, tx, wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
            optimiser.update(model, gradients)
            return loss

        optimiser = first
        for _ in range(6):
            if anew:
                optimiser = nnx.Optimizer(model, tx, wrt=nnx.Param)
            for x, y in loader:
                step(model, optimiser, x, y)

    return Loop(model, [first], run)
