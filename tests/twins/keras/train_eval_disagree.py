"""A hand-written batch normalisation that forgets to keep its running statistics, against one that keeps them."""

from typing import Any

import keras
from keras import layers, ops

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


class Normalise(layers.Layer):
    def __init__(self, keeps: bool) -> None:
        super().__init__()
        self.keeps = keeps

    def build(self, shape: Any) -> None:
        self.mean = self.add_weight(shape=(shape[-1],), initializer="zeros", trainable=False, name="mean")
        self.variance = self.add_weight(shape=(shape[-1],), initializer="ones", trainable=False, name="variance")

    def call(self, x: Any, training: bool = False) -> Any:
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = ops.moments(x, axes=0)
            if self.keeps:
                self.mean.assign(0.9 * self.mean + 0.1 * ops.stop_gradient(mean))
                self.variance.assign(0.9 * self.variance + 0.1 * ops.stop_gradient(variance))
        return (x - mean) / ops.sqrt(variance + 1e-5)


def sick(kit: Kit) -> Subject:
    return _training(kit, keeps=False)


def healthy(kit: Kit) -> Subject:
    return _training(kit, keeps=True)


def _training(kit: Kit, keeps: bool) -> Subject:
    model = keras.Sequential(
        [
            keras.Input((64,)),
            layers.Dense(48, use_bias=False),
            Normalise(keeps),
            layers.ReLU(),
            layers.Dense(48, use_bias=False),
            Normalise(keeps),
            layers.ReLU(),
            layers.Dense(10),
        ]
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))
