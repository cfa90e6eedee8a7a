"""Turning what the user gave as data into batches that can be read more than once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.adapter import Adapter
from sleuth.core.errors import UnusableInput

BATCH_SIZE = 32


@dataclass(frozen=True)
class Source:
    batches: Iterable[Any]
    order_is_ours: bool = False


class ArrayBatches:
    """Batches of arrays `(X, y)` in an order that is drawn anew, and the same way, at each pass."""

    def __init__(self, arrays: tuple[Any, ...], batch_size: int) -> None:
        self._arrays = arrays
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        order = np.random.default_rng(0).permutation(len(self._arrays[0]))
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            yield tuple(array[rows] for array in self._arrays)


def open_source(given: Any, adapter: Adapter, name: str) -> Source:
    if given is None:
        raise UnusableInput(f"{name} is None; give a loader, a dataset, a list of batches or arrays (X, y).")
    if hasattr(given, "__next__"):
        raise UnusableInput(
            f"{name} is a {type(given).__name__}, which can be read only once. Give what makes it: the DataLoader "
            "itself instead of iter(loader), or list(batches)."
        )
    if isinstance(given, tuple | list) and len(given) >= 2 and all(adapter.is_array(a) for a in given):
        return _from_arrays(tuple(given), name)
    own = adapter.batches(given, BATCH_SIZE)
    if own is not None:
        return Source(own, order_is_ours=True)
    if adapter.is_array(given):
        return Source(ArrayBatches((given,), BATCH_SIZE), order_is_ours=True)
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise UnusableInput(
            f"{name} is a {type(given).__name__}, which yields no batches; give a loader, a dataset, a list of batches or arrays (X, y)."
        )
    return Source(given)


def _from_arrays(arrays: tuple[Any, ...], name: str) -> Source:
    lengths = [a.shape[0] if len(a.shape) else 0 for a in arrays]
    if len(set(lengths)) != 1:
        shapes = ", ".join(str(tuple(a.shape)) for a in arrays)
        raise UnusableInput(f"the arrays of {name} differ in their number of samples: {shapes}; the first axis must be the same.")
    if lengths[0] == 0:
        raise UnusableInput(f"{name} has no samples.")
    return Source(ArrayBatches(arrays, min(BATCH_SIZE, lengths[0])), order_is_ours=True)
