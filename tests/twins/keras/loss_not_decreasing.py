"""Sines of far too high a frequency: images that look alike get unrelated features, so no batch helps with the next."""

import keras
from keras import layers

from sleuth import Subject
from sleuth.testing import Kit
from tests.material import digits


def sick(kit: Kit) -> Subject:
    return _training(kit, frequency=300.0)


def healthy(kit: Kit) -> Subject:
    return _training(kit, frequency=0.3)


def _training(kit: Kit, frequency: float) -> Subject:
    # Weights so small that nothing is told apart by luck before it is learned.
    small = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform", seed=0)
    model = keras.Sequential(
        [
            keras.Input((64,)),
            kit.layer("waves", 64, 128, frequency),
            layers.Dense(32, activation="relu", kernel_initializer=small),
            layers.Dense(10, kernel_initializer=small),
        ]
    )
    return Subject(model, kit.loader(*digits()), kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))
