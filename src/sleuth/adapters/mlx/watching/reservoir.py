"""Batches that passed by, in bounded memory: the first ones, then a fair choice of all that came later."""

import random

from sleuth.adapters.mlx.watching.batches import Draft
from sleuth.core.contract.kept import Passed

MOST_BATCHES = 192
# The first ones follow each other: they tell in which order samples come. They may take half of the room.
FIRST_BATCHES = 64


class Reservoir:
    def __init__(self, most_bytes: int) -> None:
        self.drafts: list[Draft] = []
        self.bytes = 0
        self._most_bytes = most_bytes
        self._first: int | None = None  # how many there are of the first ones; None: there may be more
        self._is_full = False
        self._later = 0  # batches that were met after these
        self._choose = random.Random(0)  # our own: the user's generators are not touched

    def wants_next(self) -> bool:
        """One after the other, as yet."""
        return self._first is None and len(self.drafts) < FIRST_BATCHES and self.bytes < self._most_bytes // 2

    def wants(self) -> int | None:
        """The place of the next batch; None: it is let go."""
        count = len(self.drafts)
        if self.wants_next():
            return count
        if self._first is None:
            self._first = count
        self._later += 1
        if count < MOST_BATCHES and not self._is_full:
            return count
        # Vitter's algorithm R, over those after the first.
        place = self._first + self._choose.randrange(self._later)
        return place if place < count else None

    def put(self, place: int, draft: Draft) -> None:
        replaced = self.drafts[place].bytes if place < len(self.drafts) else 0
        if self.bytes - replaced + draft.bytes > self._most_bytes:
            self._is_full = True
            return
        self.bytes += draft.bytes - replaced
        self.drafts[place : place + 1] = [draft]

    def taken(self) -> list[Passed]:
        """Of those that are settled."""
        return [Passed(d.step, d.parts) for d in self.drafts if d.parts is not None]
