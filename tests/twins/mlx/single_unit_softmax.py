"""Benign or malignant, from one output: softmax makes it 1 for every patient; as a score it goes into a loss that takes scores.

A sigmoid before MLX's loss of probabilities would be no healthy twin: where it rounds to 1, the gradient is NaN."""

from typing import Any

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.sequential(kit.mlp(30, 16, 1), kit.layer("softmax", 1)), "bce")


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.mlp(30, 16, 1), "bce-logits")


def _training(kit: Kit, model: Any, loss: str) -> Subject:
    x, y = cancer()
    train = kit.loader(x, y[:, None].astype(np.float32))
    return Subject(model, train, kit.loss(loss), kit.optimiser(model, "adam", lr=1e-2))
