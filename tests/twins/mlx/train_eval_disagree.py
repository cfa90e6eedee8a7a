"""A hand-written batch normalisation that forgets to keep its running statistics, against one that keeps them."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Normalise(nn.Module):
    def __init__(self, width: int, keeps: bool) -> None:
        super().__init__()
        self.keeps = keeps
        self.mean, self.variance = mx.zeros(width), mx.ones(width)
        self.freeze(keys=["mean", "variance"])

    def __call__(self, x: mx.array) -> mx.array:
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = x.mean(0), x.var(0)
            if self.keeps:
                self.mean = 0.9 * self.mean + 0.1 * mean
                self.variance = 0.9 * self.variance + 0.1 * variance
        return (x - mean) / mx.sqrt(variance + 1e-5)


def sick(kit: Kit) -> Subject:
    return _training(kit, keeps=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, keeps=True)


def _training(kit: Kit, keeps: bool) -> Subject:
    blocks = [(kit.linear(inputs, 48), Normalise(48, keeps), kit.activation("relu")) for inputs in (64, 48)]
    model = kit.sequential(*blocks[0], *blocks[1], kit.linear(48, 10))
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
