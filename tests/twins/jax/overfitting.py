"""A wide model and few patients: after some epochs it learns them by heart, unless somebody stops it."""

from typing import Any

from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import diabetes

SOURCE = "watch"
SPLIT = 300


def sick(kit: Kit) -> Loop:
    return _loop(kit, epochs=60)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, epochs=8)


def _loop(kit: Kit, epochs: int) -> Loop:
    x, y = diabetes()
    model, mse, loader = kit.mlp(10, 64, 64, 1), kit.loss("mse"), kit.loader(x[:SPLIT], y[:SPLIT])
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=3e-3), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, inputs, target):
            loss, gradients = nnx.value_and_grad(lambda model: mse(model(inputs), target))(model)
            optimiser.update(model, gradients)
            return loss

        validate = nnx.jit(lambda model: mse(model(x[SPLIT:]), y[SPLIT:]))
        for _ in range(epochs):
            for inputs, target in loader:
                step(model, optimiser, inputs, target)
            w.log(val_loss=float(validate(model)))

    return Loop(model, [optimiser], run)
