"""Digits and Adam: compiled once, or again before every epoch."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


def sick(kit: Kit) -> Loop:
    return _loop(anew=True)


def healthy(kit: Kit) -> Loop:
    return _loop(anew=False)


def _loop(anew: bool) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])

    def compile_model() -> None:
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)

    compile_model()

    def run(w: Any) -> None:
        for _ in range(6):
            if anew:
                compile_model()
            model.fit(x, y, verbose=0)

    return Loop(model, [model.optimizer], run)
