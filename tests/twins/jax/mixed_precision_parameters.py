"""A learned scale in half precision, as it came from a checkpoint of another model, among weights in single precision."""

import jax.numpy as jnp
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Scaled(nnx.Module):
    def __init__(self, dtype, *, rngs: nnx.Rngs) -> None:
        self.enter, self.leave = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(10, dtype))

    def __call__(self, x):
        return self.leave(nnx.relu(self.enter(x))) * self.scale[...]


def sick(kit: Kit) -> Subject:
    return _training(kit, jnp.bfloat16)


def healthy(kit: Kit) -> Subject:
    return _training(kit, jnp.float32)


def _training(kit: Kit, dtype) -> Subject:
    model = Scaled(dtype, rngs=kit.rngs)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
