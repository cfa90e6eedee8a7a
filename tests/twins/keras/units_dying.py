"""A learning rate that jumps for a few steps in the middle of the training switches most ReLUs off for good."""

from typing import Any

import keras
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
RATE = 0.1


class Jumps(keras.callbacks.Callback):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor, self.step = factor, 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.optimizer.learning_rate = RATE * (self.factor if 250 <= self.step < 254 else 1.0)
        self.step += 1


def sick(kit: Kit) -> Loop:
    return _loop(factor=25.0)


def healthy(kit: Kit) -> Loop:
    return _loop(factor=1.0)


def _loop(factor: float) -> Loop:
    x, y = digits()
    model = keras.Sequential(
        [keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(32, activation="relu"), layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(RATE, momentum=0.9), loss=loss)

    def run(w: Any) -> None:
        model.fit(x, y, epochs=11, verbose=0, callbacks=[Jumps(factor)])

    return Loop(model, [model.optimizer], run, {"every": 4})
