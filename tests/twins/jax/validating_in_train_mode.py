"""Digits with dropout and batch-norm: the validation after every epoch calls model.eval(), or forgets it."""

from typing import Any

from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(kit, evaluates=False)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, evaluates=True)


def _loop(kit: Kit, evaluates: bool) -> Loop:
    x, y = digits()
    loader, held_out = kit.loader(x[:1500], y[:1500]), kit.loader(x[1500:], y[1500:], shuffle=False)
    model = kit.sequential(
        kit.linear(64, 64),
        kit.layer("batchnorm", 64),
        kit.activation("relu"),
        kit.layer("dropout", 0.2),
        kit.linear(64, 10),
    )
    criterion = kit.loss("cross-entropy")
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=3e-3), wrt=nnx.Param)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, a, b):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(a), b))(model)
            optimiser.update(model, gradients)
            return loss

        validate = nnx.jit(lambda model, a, b: criterion(model(a), b))
        for _ in range(4):
            model.train()
            for a, b in loader:
                step(model, optimiser, a, b)
            if evaluates:
                model.eval()
            for a, b in held_out:
                validate(model, a, b)

    return Loop(model, [optimiser], run)
