"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

import optax
from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
EPOCHS = 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, decay=0.0)


def _loop(kit: Kit, decay: float) -> Loop:
    x, y = digits()
    model, loader = kit.mlp(64, 32, 10), kit.loader(x[:SPLIT], y[:SPLIT])
    tx = optax.chain(optax.add_decayed_weights(decay), optax.sgd(0.1))
    optimiser = nnx.Optimizer(model, tx, wrt=nnx.Param)

    def cross_entropy(model, inputs, target):
        return optax.softmax_cross_entropy_with_integer_labels(model(inputs), target).mean()

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, inputs, target):
            loss, gradients = nnx.value_and_grad(cross_entropy)(model, inputs, target)
            optimiser.update(model, gradients)
            return loss

        validate = nnx.jit(cross_entropy)
        for _ in range(EPOCHS):
            for inputs, target in loader:
                step(model, optimiser, inputs, target)
            w.log(val_loss=float(validate(model, x[SPLIT:], y[SPLIT:])))

    return Loop(model, [optimiser], run)
