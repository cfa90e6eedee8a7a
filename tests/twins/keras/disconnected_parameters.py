"""Features that pass stop_gradient before the head, so that only the head learns, against features that do not."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Net(keras.Model):
    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.cut = cut
        self.features = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(32)])
        self.head = layers.Dense(10)

    def call(self, x: Any) -> Any:
        features = ops.relu(self.features(x))
        if self.cut:
            features = ops.stop_gradient(features)
        return self.head(features)


def sick(kit: Kit) -> Subject:
    return _training(kit, cut=True)


def healthy(kit: Kit) -> Subject:
    return _training(kit, cut=False)


def _training(kit: Kit, cut: bool) -> Subject:
    x, y = digits()
    model = Net(cut)
    model(x[:2])
    return Subject(model, kit.loader(x, y), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=2e-3))
