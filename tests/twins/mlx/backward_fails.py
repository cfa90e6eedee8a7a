"""A loss for each sample: nobody takes their mean, and one that is averaged."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, averaged=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, averaged=True)


def _training(kit: Kit, averaged: bool) -> Subject:
    def loss(scores: mx.array, target: mx.array) -> mx.array:
        each = nn.losses.cross_entropy(scores, target)
        return each.mean() if averaged else each

    model = kit.mlp(64, 64, 10)
    return Subject(model, kit.loader(*digits()), loss, kit.optimiser(model, "adam", lr=3e-3))
