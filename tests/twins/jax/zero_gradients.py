"""A code between two layers that is rounded to whole numbers, or that stays as it is."""

import jax.numpy as jnp
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


class Coded(nnx.Module):
    def __init__(self, rounds: bool, *, rngs: nnx.Rngs) -> None:
        self.rounds = rounds
        self.enter = nnx.Linear(64, 64, rngs=rngs)
        self.code = nnx.Linear(64, 32, rngs=rngs)
        self.leave = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, x):
        code = self.code(nnx.tanh(self.enter(x)))
        return self.leave(jnp.round(4 * code) / 4 if self.rounds else code)


def sick(kit: Kit) -> Training:
    return _training(kit, rounds=True)


def healthy(kit: Kit) -> Training:
    return _training(kit, rounds=False)


def _training(kit: Kit, rounds: bool) -> Training:
    model = Coded(rounds, rngs=kit.rngs)
    subject = Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
    return Training(subject, steps=240, options={"every": 10})
