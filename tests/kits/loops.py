"""What the loops of every kit have in common."""

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from typing import Any

import numpy as np

from sleuth.core.subject import Subject


def batches(subject: Subject, steps: int) -> Iterator[Any]:
    """The loader, again and again, until so many batches have come."""
    return islice((batch for epoch in repeat(subject.train) for batch in epoch), steps)


class Loader:
    """Can be read again and again; shuffles anew at each pass. `own` makes the framework's array of NumPy's."""

    def __init__(
        self, x: np.ndarray, y: np.ndarray, batch_size: int, shuffle: bool, own: Callable[[np.ndarray], Any] = lambda array: array
    ) -> None:
        self.x, self.y, self.own = x, y, own
        self.batch_size, self.shuffle = batch_size, shuffle
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return -(-len(self.x) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        order = self.rng.permutation(len(self.x)) if self.shuffle else np.arange(len(self.x))
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            yield self.own(self.x[rows]), self.own(self.y[rows])
