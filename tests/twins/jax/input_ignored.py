"""A call that builds its features from the shape of the input alone, against one that reads the input."""

import jax.numpy as jnp
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nnx.Module):
    def __init__(self, ignore: bool, *, rngs: nnx.Rngs) -> None:
        self.ignore = ignore
        self.enter, self.leave = nnx.Linear(64, 64, rngs=rngs), nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, x):
        if self.ignore:
            x = jnp.ones_like(x)
        return self.leave(nnx.relu(self.enter(x)))


def sick(kit: Kit) -> Subject:
    return _training(kit, ignore=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, ignore=False)


def _training(kit: Kit, ignore: bool) -> Subject:
    model = Net(ignore, rngs=kit.rngs)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
