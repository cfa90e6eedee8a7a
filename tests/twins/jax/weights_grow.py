"""A penalty on large weights with the wrong sign, and with the right one."""

import jax
import optax
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, sign=-1.0)


def healthy(kit: Kit) -> Training:
    return _training(kit, sign=0.1)


def _training(kit: Kit, sign: float) -> Training:
    model = kit.mlp(64, 32, 10, activation="tanh")

    def step(model, batch):
        x, y = batch
        penalty = sum((p**2).sum() for p in jax.tree.leaves(nnx.state(model, nnx.Param)))
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean() + sign * 1e-2 * penalty

    subject = Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "sgd", lr=0.5))
    return Training(subject, steps=400, options={"every": 10})
