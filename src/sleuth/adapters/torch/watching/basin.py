"""Batches that passed by, in bounded memory: the first ones, then a fair choice of all that came later."""

import random
from collections.abc import Callable
from typing import Any

import torch

from sleuth.adapters.torch.listening import is_tensor
from sleuth.core.kept import Passed
from sleuth.core.tree import leaves, map_arrays

MOST_BATCHES = 192
# The first ones follow each other: they tell in which order samples come.
FIRST_BATCHES = 64
MOST_BYTES = 32 << 20
# Of larger batches the first rows are kept.
MOST_BATCH_BYTES = 1 << 20


class Basin:
    def __init__(self) -> None:
        self.batches: list[Passed] = []
        self._bytes = 0
        self._met = 0
        self._choose = random.Random(0)  # our own: the user's generators are not touched

    def wants(self) -> int | None:
        """The place of the next batch; None: it is let go."""
        self._met += 1
        full = len(self.batches) >= MOST_BATCHES or self._bytes >= MOST_BYTES
        if not full:
            return len(self.batches)
        if len(self.batches) <= FIRST_BATCHES:
            return None
        place = self._choose.randrange(self._met)
        return place if FIRST_BATCHES <= place < len(self.batches) else None

    def put(self, place: int, make: Callable[[], Passed]) -> None:
        passed = make()
        size = size_of(passed.parts.raw)
        if place < len(self.batches):
            self._bytes += size - size_of(self.batches[place].parts.raw)
            self.batches[place] = passed
        else:
            self._bytes += size
            self.batches.append(passed)


def size_of(tree: Any) -> int:
    return sum(t.nbytes for _, t in leaves(tree, is_tensor))


def copied(tree: Any, *, whole: bool) -> Any:
    """Without its graph; of a large batch, unless the whole is wanted, the first rows."""
    rows = None
    if not whole and (size := size_of(tree)) > MOST_BATCH_BYTES:
        lengths = {t.shape[0] if t.dim() else 0 for _, t in leaves(tree, is_tensor)}
        if len(lengths) == 1 and (length := lengths.pop()):
            rows = max(1, length * MOST_BATCH_BYTES // size)

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()[:rows].clone() if rows is not None else tensor.detach().clone()

    return map_arrays(tree, copy, is_tensor)
