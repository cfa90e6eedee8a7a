"""A model that is trained on from a checkpoint: saved with the wrapper around it, or what is inside."""

from typing import Any

from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4


class Wrapper(nnx.Module):
    def __init__(self, inner: nnx.Module) -> None:
        self.inner = inner


def sick(kit: Kit) -> Loop:
    return _loop(kit, wrapped=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, wrapped=False)


def _loop(kit: Kit, wrapped: bool) -> Loop:
    before = Wrapper(kit.mlp(64, 32, 10))
    state = nnx.state(before if wrapped else before.inner)
    model, criterion, loader = kit.mlp(64, 32, 10), kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = nnx.Optimizer(model, kit.optimiser(model, lr=3e-3), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
            optimiser.update(model, gradients)
            return loss

        nnx.update(model, state)
        for _ in range(PASSES):
            for x, y in loader:
                step(model, optimiser, x, y)

    return Loop(model, [optimiser], run, fails=wrapped)
