"""Batches that passed by, in bounded memory: the first ones, then a fair choice of all that came later."""

import random
from typing import Any

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.core.contract.kept import Passed
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts

MOST_BATCHES = 192
# The first ones follow each other: they tell in which order samples come. They may take half of the room.
FIRST_BATCHES = 64
# Of larger batches the first rows are kept; of the very first one more, as experiments with a single batch use it.
MOST_BATCH_BYTES = 1 << 20
MOST_FIRST_BYTES = 8 << 20


class Reservoir:
    def __init__(self, most_bytes: int) -> None:
        self.batches: list[Passed] = []
        self._bytes, self._most_bytes = 0, most_bytes
        self._first: int | None = None  # how many there are of the first ones; None: there may be more
        self._is_full = False
        self._later = 0  # batches that were met after these
        self._choose = random.Random(0)  # our own: the user's generators are not touched

    def wants(self) -> int | None:
        """The place of the next batch; None: it is let go."""
        count = len(self.batches)
        if self._first is None:
            if count < FIRST_BATCHES and self._bytes < self._most_bytes // 2:
                return count
            self._first = count
        self._later += 1
        if count < MOST_BATCHES and not self._is_full:
            return count
        # Vitter's algorithm R, over those after the first.
        place = self._first + self._choose.randrange(self._later)
        return place if place < count else None

    def close(self) -> None:
        """Nothing more is wanted."""
        self._first, self._is_full, self._later = len(self.batches), True, 1 << 62

    def put(self, place: int, passed: Passed) -> None:
        replaced = size_of(self.batches[place].parts.raw) if place < len(self.batches) else 0
        bytes_then = self._bytes - replaced + size_of(passed.parts.raw)
        if bytes_then > self._most_bytes:
            self._is_full = True
            return
        self._bytes = bytes_then
        self.batches[place : place + 1] = [passed]


def size_of(tree: Any) -> int:
    return sum(array.nbytes for _, array in leaves(tree, lambda thing: isinstance(thing, np.ndarray)))


def parts_of(x: Any, y: Any, *, first: bool) -> Parts | None:
    """Copies, since whoever made the batch may write over it. None: too large for a single sample, or not of numbers."""
    arrays = [a for _, a in leaves((x, y), backend.is_array)]
    if not arrays or any(_kind(a) not in "fiub" for a in arrays):
        return None
    size, most = sum(_bytes(a) for a in arrays), MOST_FIRST_BYTES if first else MOST_BATCH_BYTES
    rows = None
    if size > most:
        lengths = {a.shape[0] if len(a.shape) else 0 for a in arrays}
        rows = lengths.pop() * most // size if len(lengths) == 1 else 0
        if not rows:
            return None
    given, wanted = map_arrays((x, y), lambda a: np.array(backend.values(a if rows is None else a[:rows])), backend.is_array)
    return Parts(given, wanted, (given, wanted))


def _kind(array: Any) -> str:
    word = backend.dtype(array)
    return "f" if "float" in word else "b" if word == "bool" else "i" if "int" in word else "O"


def _bytes(array: Any) -> int:
    return int(getattr(array, "nbytes", 0))
