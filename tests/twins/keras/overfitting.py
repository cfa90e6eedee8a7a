"""A wide model and few patients: after some epochs it learns them by heart, unless somebody stops it."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import diabetes

SOURCE = "watch"
SPLIT = 300


def sick(kit: Kit) -> Loop:
    return _loop(epochs=60)


def healthy(kit: Kit) -> Loop:
    return _loop(epochs=8)


def _loop(epochs: int) -> Loop:
    x, y = diabetes()
    model = keras.Sequential(
        [keras.Input((10,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(1)]
    )
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse")

    def run(w: Any) -> None:
        model.fit(x[:SPLIT], y[:SPLIT], epochs=epochs, validation_data=(x[SPLIT:], y[SPLIT:]), verbose=0)

    return Loop(model, [model.optimizer], run)
