"""The largest products of pixels as features: of two pixels, or of four, which takes 37 GB for a batch."""

import resource
from typing import Any

import jax.numpy as jnp
from flax import nnx

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 16
# Some systems promise more memory than they have and kill who takes it: the sick one must be refused.
MOST = 24 << 30


def sick(kit: Kit) -> Loop:
    return _loop(kit, degree=4)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, degree=2)


def _loop(kit: Kit, degree: int) -> Loop:
    def products(x):
        for _ in range(degree // 2):
            x = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return jnp.sort(x, axis=1)[:, -(64**2) :]

    model, criterion = kit.sequential(products, kit.linear(64**2, 10)), kit.loss("cross-entropy")
    optimiser = nnx.Optimizer(model, kit.optimiser(model, "adam", lr=1e-3), wrt=nnx.Param)
    loader = kit.loader(*digits(), batch_size=600)

    def run(w: Any) -> None:
        @nnx.jit
        def step(model, optimiser, x, y):
            loss, gradients = nnx.value_and_grad(lambda model: criterion(model(x), y))(model)
            optimiser.update(model, gradients)
            return loss

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MOST, hard))
        try:
            for _ in range(PASSES):
                for x, y in loader:
                    step(model, optimiser, x, y)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

    return Loop(model, [optimiser], run, fails=degree == 4)
