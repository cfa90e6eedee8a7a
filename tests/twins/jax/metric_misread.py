"""Accuracy of each epoch: the right answers are counted on from epoch to epoch, or from zero."""

from typing import Any

from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, reset=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, reset=True)


def _loop(kit: Kit, reset: bool) -> Loop:
    model, criterion, loader = kit.mlp(64, 32, 10), kit.loss("cross-entropy"), kit.loader(*digits())
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=2e-3), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            def loss(model):
                scores = model(x)
                return criterion(scores, y), scores

            (_, scores), gradients = nnx.value_and_grad(loss, has_aux=True)(model)
            optimiser.update(model, gradients)
            return (scores.argmax(1) == y).sum()

        right = 0
        for _ in range(8):
            samples = 0
            if reset:
                right = 0
            for x, y in loader:
                right += int(step(model, optimiser, x, y))
                samples += len(y)
            w.log(accuracy=right / samples)

    return Loop(model, [optimiser], run)
