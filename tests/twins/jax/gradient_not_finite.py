"""A penalty on the length of a shift that starts at zero: a root of the squares, and one kept away from zero."""

import jax.numpy as jnp
import optax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Shifted(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.enter, self.leave = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)
        self.shift = nnx.Param(jnp.zeros(10))

    def __call__(self, x):
        return self.leave(nnx.relu(self.enter(x))) + self.shift[...]


def sick(kit: Kit) -> Subject:
    return _training(kit, smallest=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, smallest=1e-6)


def _training(kit: Kit, smallest: float) -> Subject:
    def step(model, batch):
        x, y = batch
        length = jnp.sqrt((model.shift[...] ** 2).sum() + smallest)
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean() + 1e-3 * length

    model = Shifted(rngs=kit.rngs)
    return Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "adam", lr=1e-3))
