"""A penalty on large weights with the wrong sign, and with the right one."""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from sleuth import Subject
from sleuth.testing import Kit, Training
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Training:
    return _training(kit, sign=-1.0)


def healthy(kit: Kit) -> Training:
    return _training(kit, sign=0.1)


def _training(kit: Kit, sign: float) -> Training:
    def step(model: nn.Module, batch: Any) -> mx.array:
        x, y = batch
        penalty = sum(mx.square(p).sum() for _, p in tree_flatten(model.trainable_parameters()))
        return nn.losses.cross_entropy(model(x), y, reduction="mean") + sign * 1e-2 * penalty

    model = kit.mlp(64, 32, 10, activation="tanh")
    subject = Subject(model, kit.loader(*digits()), step=step, optimizer=kit.optimiser(model, "sgd", lr=0.5))
    return Training(subject, steps=400, options={"every": 10})
