"""Digits that lie as compressed text: a PyDataset unpacks and parses each whenever it is asked for, or all of them once."""

import zlib
from typing import Any

import keras
import numpy as np
from keras import layers

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
BATCH = 32
SAMPLES = 1024


def parse(text: bytes) -> np.ndarray:
    return np.array(zlib.decompress(text).split(), dtype=np.float32)[::160]


class Digits(keras.utils.PyDataset):
    def __init__(self, parses_each_time: bool) -> None:
        super().__init__()
        x, self.y = (a[:SAMPLES] for a in digits())
        self.packed = [zlib.compress(" ".join(f"{v:.9f}" for v in np.repeat(row, 160)).encode()) for row in x]
        self.parsed = None if parses_each_time else np.stack([parse(text) for text in self.packed])

    def __len__(self) -> int:
        return SAMPLES // BATCH

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(number * BATCH, (number + 1) * BATCH)
        x = np.stack([parse(text) for text in self.packed[rows]]) if self.parsed is None else self.parsed[rows]
        return x, self.y[rows]


def sick(kit: Kit) -> Loop:
    return _loop(parses_each_time=True)


def healthy(kit: Kit) -> Loop:
    return _loop(parses_each_time=False)


def _loop(parses_each_time: bool) -> Loop:
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss)

    def run(w: Any) -> None:
        model.fit(Digits(parses_each_time), epochs=2, verbose=0)

    return Loop(model, [model.optimizer], run)
