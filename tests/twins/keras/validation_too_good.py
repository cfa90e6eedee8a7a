"""The mean losses of the validation batches, added up and divided by the number of samples instead of the number of batches."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
SPLIT = 1400
BATCH = 32


class Validates(keras.callbacks.Callback):
    def __init__(self, watch: Any, x: Any, y: Any, by_samples: bool) -> None:
        super().__init__()
        self.watch, self.x, self.y, self.by_samples = watch, x, y, by_samples

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        starts = range(0, len(self.x), BATCH)
        losses = [self.model.evaluate(self.x[i : i + BATCH], self.y[i : i + BATCH], verbose=0) for i in starts]
        self.watch.log(val_loss=sum(losses) / (len(self.x) if self.by_samples else len(losses)))


def sick(kit: Kit) -> Loop:
    return _loop(by_samples=True)


def healthy(kit: Kit) -> Loop:
    return _loop(by_samples=False)


def _loop(by_samples: bool) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=loss)

    def run(w: Any) -> None:
        own = Validates(w, x[SPLIT:], y[SPLIT:], by_samples)
        model.fit(x[:SPLIT], y[:SPLIT], batch_size=BATCH, epochs=12, verbose=0, callbacks=[own])

    return Loop(model, [model.optimizer], run)
