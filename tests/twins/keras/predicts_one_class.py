"""Small digits against each of the larger ones: a PyDataset that hands out its first image under every number, or each one."""

from typing import Any

import keras
import numpy as np
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
BATCH = 32


class Digits(keras.utils.PyDataset):
    def __init__(self, always_first: bool) -> None:
        super().__init__()
        self.x, y = digits()
        self.y = np.maximum(y - 4, 0)
        self.order = np.random.default_rng(0).permutation(len(y))
        self.always_first = always_first

    def __len__(self) -> int:
        return len(self.x) // BATCH

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rows = self.order[number * BATCH : (number + 1) * BATCH]
        return self.x[np.zeros_like(rows) if self.always_first else rows], self.y[rows]


def sick(kit: Kit) -> Loop:
    return _loop(always_first=True)


def healthy(kit: Kit) -> Loop:
    return _loop(always_first=False)


def _loop(always_first: bool) -> Loop:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)

    def run(w: Any) -> None:
        model.fit(Digits(always_first), epochs=8, verbose=0)

    return Loop(model, [model.optimizer], run)
