"""Accuracy of each epoch, counted in a metric of one's own: it is set back to zero after every epoch, or counts on."""

from typing import Any

import keras
from keras import layers, ops

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"


class Accuracy(keras.metrics.Metric):
    def __init__(self, samples: int, counts_on: bool) -> None:
        super().__init__(name="accuracy")
        self.samples, self.counts_on = samples, counts_on
        self.right = self.add_weight(name="right", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        named = ops.cast(ops.argmax(y_pred, axis=1), "int64")
        self.right.assign_add(ops.sum(ops.cast(named == ops.cast(ops.reshape(y_true, (-1,)), "int64"), "float32")))

    def result(self) -> Any:
        return self.right / self.samples

    def reset_state(self) -> None:
        if not self.counts_on:
            self.right.assign(0.0)


def sick(kit: Kit) -> Loop:
    return _loop(counts_on=True)


def healthy(kit: Kit) -> Loop:
    return _loop(counts_on=False)


def _loop(counts_on: bool) -> Loop:
    x, y = digits()
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=loss, metrics=[Accuracy(len(x), counts_on)])

    def run(w: Any) -> None:
        model.fit(x, y, epochs=8, verbose=0)

    return Loop(model, [model.optimizer], run)
