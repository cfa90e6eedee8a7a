"""Digits that lie as compressed text: each is unpacked and parsed whenever it is asked for, or all of them once."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.testing import Kit, Loop
from tests.material import digits

SOURCE = "watch"
PASSES = 4
SAMPLES = 1024


class Packed:
    """Batches of rows that are kept as text."""

    def __init__(self, x: np.ndarray, y: np.ndarray, parses_each_time: bool) -> None:
        self.texts = [zlib.compress(" ".join(f"{v:.9f}" for v in np.repeat(row, 160)).encode()) for row in x]
        self.parsed = None if parses_each_time else [self.parse(text) for text in self.texts]
        self.y = y

    def parse(self, text: bytes) -> np.ndarray:
        return np.array(zlib.decompress(text).split(), dtype=np.float32)[::160]

    def row(self, i: int) -> np.ndarray:
        return self.parse(self.texts[i]) if self.parsed is None else self.parsed[i]

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        order = np.random.default_rng(0).permutation(len(self.y))
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            yield np.stack([self.row(i) for i in rows]), self.y[rows]


def sick(kit: Kit) -> Loop:
    return _loop(kit, parses_each_time=True)


def healthy(kit: Kit) -> Loop:
    return _loop(kit, parses_each_time=False)


def _loop(kit: Kit, parses_each_time: bool) -> Loop:
    x, y = (a[:SAMPLES] for a in digits())
    loader = Packed(x, y, parses_each_time)
    model, criterion = kit.mlp(64, 32, 10), kit.loss("cross-entropy")
    optimiser = kit.optimiser(model, lr=1e-2)

    def run(w: Any) -> None:
        for _ in range(PASSES):
            for inputs, target in loader:
                _, gradient = criterion(model.forward(inputs), target)
                optimiser.step(model.backward(gradient))

    return Loop(model, [optimiser], run)
