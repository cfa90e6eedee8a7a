"""Counting bright pixels with a Poisson loss: the logarithm of a rate that ReLU sets to zero, or of one kept above it."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, smallest=0.0, start=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, smallest=0.1, start=0.5)


def _training(kit: Kit, smallest: float, start: float) -> Subject:
    def poisson(rate: mx.array, count: mx.array) -> mx.array:
        rate = nn.relu(rate) + smallest
        return (rate - count * mx.log(rate)).mean()

    x, _ = digits()
    counts = (x[:, 32:] > 0.9).sum(1, keepdims=True).astype(np.float32)
    model = kit.mlp(64, 32, 1)
    model.layers[-1].bias = mx.full(1, start)
    return Subject(model, kit.loader(x, counts), poisson, kit.optimiser(model, "adam", lr=1e-3))
