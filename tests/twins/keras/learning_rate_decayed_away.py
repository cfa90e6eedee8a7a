"""A rate that is to shrink tenfold every ten epochs: its schedule counts steps, and is told ten, or the steps of ten epochs."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
STEPS_AN_EPOCH = 57


def sick(kit: Kit) -> Loop:
    return _loop(decay_steps=10)


def healthy(kit: Kit) -> Loop:
    return _loop(decay_steps=10 * STEPS_AN_EPOCH)


def _loop(decay_steps: int) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    schedule = keras.optimizers.schedules.ExponentialDecay(3e-3, decay_steps, 0.1, staircase=True)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(schedule), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=12, verbose=0)

    return Loop(model, [model.optimizer], run)
