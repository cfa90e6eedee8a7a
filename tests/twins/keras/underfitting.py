"""Weight decay so strong that it pulls the weights back faster than the digits can teach them."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400


def sick(kit: Kit) -> Loop:
    return _loop(decay=0.15)


def healthy(kit: Kit) -> Loop:
    return _loop(decay=None)


def _loop(decay: float | None) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.1, weight_decay=decay), loss=loss)

    def run(w: Any) -> None:
        model.fit(x[:SPLIT], y[:SPLIT], epochs=30, validation_data=(x[SPLIT:], y[SPLIT:]), verbose=0)

    return Loop(model, [model.optimizer], run)
