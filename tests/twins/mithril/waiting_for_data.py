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
    loader = Packed(*(a[:SAMPLES] for a in digits()), parses_each_time)
    physical, params = model = kit.mlp(64, 32, 10)
    loss, optimiser = kit.loss("cross-entropy"), kit.optimiser(model, lr=1e-2)
    (output,) = physical.output_keys

    def run(w: Any) -> None:
        weights = dict(params)
        state = optimiser.init(physical.backend, weights)
        for _ in range(PASSES):
            for x, y in loader:
                data = {"input": x}
                _, gradient = loss(physical.evaluate(weights, data)[output], y)
                _, gradients = physical.evaluate(weights, data, output_gradients={output: gradient})
                weights, state = optimiser.update_params(weights, gradients, state)

    return Loop((physical, params), [optimiser], run)
