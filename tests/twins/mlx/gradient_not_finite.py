"""A penalty on the length of a shift that starts at zero: the root of zero, and of a little more."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
        self.shift = mx.zeros(10)

    def __call__(self, x: mx.array) -> mx.array:
        return self.body(x) + self.shift


def sick(kit: Kit) -> Subject:
    return _training(kit, least=0.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, least=1e-12)


def _training(kit: Kit, least: float) -> Subject:
    def step(model: Shifted, batch: Any) -> mx.array:
        x, y = batch
        length = mx.sqrt(mx.square(model.shift).sum() + least)
        return nn.losses.cross_entropy(model(x), y, reduction="mean") + 1e-3 * length

    model = Shifted()
    return Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "adam", lr=1e-3))
