"""A code between two layers that is rounded to whole numbers, or that stays as it is."""

from typing import Any

import keras
from keras import layers, ops

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(rounds=True)


def healthy(kit: Kit) -> Loop:
    return _loop(rounds=False)


def _loop(rounds: bool) -> Loop:
    x, y = digits()
    image = keras.Input((64,))
    code = layers.Dense(32)(layers.Dense(64, activation="tanh")(image))
    if rounds:
        code = ops.round(4 * code) / 4
    model = keras.Model(image, layers.Dense(10)(code))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=5, verbose=0)

    return Loop(model, [model.optimizer], run, {"every": 10})
