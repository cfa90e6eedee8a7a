"""A model that builds its features from the shape of the input alone, against one that reads the input."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(nn.Module):
    def __init__(self, kit: Kit, ignores: bool) -> None:
        super().__init__()
        self.body, self.ignores = kit.mlp(64, 64, 10), ignores

    def __call__(self, x: mx.array) -> mx.array:
        if self.ignores:
            x = mx.ones_like(x)
        return self.body(x)


def sick(kit: Kit) -> Subject:
    return _training(kit, ignores=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, ignores=False)


def _training(kit: Kit, ignores: bool) -> Subject:
    model = Net(kit, ignores)
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=1e-3))
