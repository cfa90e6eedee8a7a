"""Benign or malignant, from one output: softmax makes it 1 for every patient, sigmoid a probability."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import cancer


def sick(kit: Kit) -> Subject:
    return _training(kit, kit.layer("softmax", 1))


def healthy(kit: Kit) -> Subject:
    return _training(kit, kit.activation("sigmoid"))


def _training(kit: Kit, last: object) -> Subject:
    x, y = cancer()
    model = kit.sequential(kit.mlp(30, 16, 1), last)
    train = kit.loader(x, y[:, None].astype(np.float32))
    return Subject(model, train, kit.loss("bce"), kit.optimiser(model, "adam", lr=1e-2))
