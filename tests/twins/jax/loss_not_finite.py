"""Counting bright pixels with a Poisson loss: the logarithm of a rate that ReLU sets to zero, or of one kept above it."""

import jax.numpy as jnp
import numpy as np
from flax import nnx

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, smallest=0.0, bias=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, smallest=0.1, bias=0.5)


def _training(kit: Kit, smallest: float, bias: float) -> Subject:
    def poisson(rate, count):
        rate = nnx.relu(rate) + smallest
        return (rate - count * jnp.log(rate)).mean()

    x, _ = digits()
    counts = (x[:, 32:] > 0.9).sum(1, keepdims=True).astype(np.float32)
    last = kit.linear(32, 1)
    last.bias[...] = jnp.full(1, bias)
    model = kit.sequential(kit.linear(64, 32), kit.activation("relu"), last)
    return Subject(model, kit.loader(x, counts), poisson, kit.optimiser(model, "adam", lr=1e-3))
