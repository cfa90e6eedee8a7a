"""Weights that are put back after every step, by a callback meant for the end of the epoch; and the same without."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class KeepsBest(keras.callbacks.Callback):
    def on_train_begin(self, logs: Any = None) -> None:
        self.best = self.model.get_weights()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.set_weights(self.best)


def sick(kit: Kit) -> Loop:
    return _loop(puts_back=True)


def healthy(kit: Kit) -> Loop:
    return _loop(puts_back=False)


def _loop(puts_back: bool) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=8, verbose=0, callbacks=[KeepsBest()] if puts_back else [])

    return Loop(model, [model.optimizer], run, {"every": 10})
