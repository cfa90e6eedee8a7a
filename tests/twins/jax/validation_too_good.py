"""The mean losses of the validation batches, added up and divided by the number of samples instead of the number of batches."""

from typing import Any

from flax import nnx

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
    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    loader, held_out = kit.loader(x[:SPLIT], y[:SPLIT]), kit.loader(x[SPLIT:], y[SPLIT:], shuffle=False)
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=1e-3), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, inputs, target):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(inputs), target))(model)
            optimiser.update(model, gradients)
            return loss

        validate = nnx.jit(lambda model, inputs, target: criterion(model(inputs), target))
        for _ in range(EPOCHS):
            for inputs, target in loader:
                step(model, optimiser, inputs, target)
            total = sum(float(validate(model, inputs, target)) for inputs, target in held_out)
            w.log(val_loss=total / (len(x) - SPLIT if by_samples else len(held_out)))

    return Loop(model, [optimiser], run)
