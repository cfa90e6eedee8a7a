"""What the first layer says is kept for a picture by a callback: of every step since the beginning, or of the latest only."""

import ctypes
import sys
from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 40
WIDTH = 512


def sick(kit: Kit) -> Loop:
    return _loop(keeps_all=True)


def healthy(kit: Kit) -> Loop:
    return _loop(keeps_all=False)


def _loop(keeps_all: bool) -> Loop:
    x, y = digits()
    first = layers.Dense(WIDTH, activation="relu")
    model = keras.Sequential([keras.Input((64,)), first, layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)

    def run(w: Any) -> None:
        # What earlier work of this process freed is given back: otherwise the first hundred megabytes come from there.
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
        features: list[Any] = []

        def keep(batch: int, logs: Any) -> None:
            if not keeps_all:
                features.clear()
            features.append(first(x[:256]).detach())

        kept = keras.callbacks.LambdaCallback(on_train_batch_end=keep)
        model.fit(x, y, batch_size=256, epochs=PASSES, verbose=0, callbacks=[kept])

    return Loop(model, [model.optimizer], run)
