"""Batches that passed by, in bounded memory: the first ones, then a fair choice of all that came later."""

import random
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_BATCHES = 192
# The first ones follow each other: they tell in which order samples come. They may take half of the room.
FIRST_BATCHES = 64
# Of larger batches the first rows are kept; of the very first one more, as experiments with a single batch use it.
MOST_BATCH_BYTES = 1 << 20
MOST_FIRST_BYTES = 8 << 20


class Reservoir(Generic[T]):
    def __init__(self, most_bytes: int) -> None:
        self.items: list[T] = []
        self.bytes = 0
        self._sizes: list[int] = []
        self._most_bytes = most_bytes
        self._first: int | None = None  # how many there are of the first ones; None: there may be more
        self._is_full = False
        self._later = 0  # batches that were met after these
        self._choose = random.Random(0)  # our own: the user's generators are not touched

    @property
    def wants_next(self) -> bool:
        """The first ones are taken one after the other, as yet."""
        return self._first is None and len(self.items) < FIRST_BATCHES and self.bytes < self._most_bytes // 2

    def wants(self) -> int | None:
        """The place of the next batch; None: it is let go."""
        count = len(self.items)
        if self.wants_next:
            return count
        if self._first is None:
            self._first = count
        self._later += 1
        if count < MOST_BATCHES and not self._is_full:
            return count
        # Vitter's algorithm R, over those after the first.
        place = self._first + self._choose.randrange(self._later)
        return place if place < count else None

    def put(self, place: int, item: T, size: int) -> bool:
        """False: there is no room for it."""
        replaced = self._sizes[place] if place < len(self.items) else 0
        if self.bytes - replaced + size > self._most_bytes:
            self._is_full = True
            return False
        self.bytes += size - replaced
        self.items[place : place + 1] = [item]
        self._sizes[place : place + 1] = [size]
        return True

    def close(self) -> None:
        """Nothing more is wanted."""
        self._first, self._is_full, self._later = len(self.items), True, 1 << 62


def rows_that_fit(size: int, lengths: set[int], *, first: bool) -> int | None:
    """Of a batch of so many bytes whose arrays have so many rows: None for all of them, 0 where not one sample fits."""
    most = MOST_FIRST_BYTES if first else MOST_BATCH_BYTES
    if size <= most:
        return None
    return next(iter(lengths)) * most // size if len(lengths) == 1 else 0
