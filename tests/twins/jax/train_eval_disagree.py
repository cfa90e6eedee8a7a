"""A hand-written batch normalisation that forgets to keep its running statistics, against one that keeps them."""

import jax.numpy as jnp
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Normalise(nnx.Module):
    def __init__(self, width: int, keeps: bool) -> None:
        self.keeps, self.use_running_average = keeps, False
        self.mean, self.variance = nnx.BatchStat(jnp.zeros(width)), nnx.BatchStat(jnp.ones(width))

    def __call__(self, x):
        mean, variance = self.mean[...], self.variance[...]
        if not self.use_running_average:
            mean, variance = x.mean(0), x.var(0, ddof=1)
            if self.keeps:
                self.mean[...] += 0.1 * (mean - self.mean[...])
                self.variance[...] += 0.1 * (variance - self.variance[...])
        return (x - mean) / jnp.sqrt(variance + 1e-5)


def sick(kit: Kit) -> Subject:
    return _training(kit, keeps=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, keeps=True)


def _training(kit: Kit, keeps: bool) -> Subject:
    blocks = [(kit.linear(inputs, 48), Normalise(48, keeps), kit.activation("relu")) for inputs in (64, 48)]
    model = kit.sequential(*blocks[0], *blocks[1], kit.linear(48, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
