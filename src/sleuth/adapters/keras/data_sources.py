"""Data sources that Keras knows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.core.contract.adapter import Rows
from sleuth.core.runtime.tree import leaves, map_arrays


class Batches:
    """A PyDataset from its first batch to its last, as often as it is asked for."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return int(self._source.num_batches or 0)

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self._source[i]


def batches(source: Any, batch_size: int) -> Iterable[Any] | None:
    return Batches(source) if isinstance(source, keras.utils.PyDataset) and source.num_batches else None


def rows(source: Any) -> Rows | None:
    """Samples of a PyDataset by their position: its batches are read in its own order, whatever `fit` shuffles."""
    if not isinstance(source, keras.utils.PyDataset) or not source.num_batches:
        return None
    count = int(source.num_batches)
    size, last = (_samples(source[number]) for number in (0, count - 1))
    if not size or not last:
        return None

    def take(positions: np.ndarray) -> Any:
        kept: dict[int, Any] = {}
        picked = []
        for position in positions.tolist():
            number, row = divmod(position, size)
            if number not in kept:
                kept[number] = [(path, backend.values(a)) for path, a in leaves(source[number], backend.is_array)]
            picked.append([values[row] for _, values in kept[number]])
        return tuple(np.stack(column) for column in zip(*picked, strict=True))

    return Rows((count - 1) * size + last, take)


def _samples(batch: Any) -> int:
    found = next((a for _, a in leaves(batch, backend.is_array) if len(a.shape)), None)
    return int(found.shape[0]) if found is not None and isinstance(batch, tuple | list) else 0


def first_batch(source: Any) -> Any:
    """Without moving anything on; None where that cannot be had."""
    if isinstance(source, keras.utils.PyDataset):
        return source[0]
    if isinstance(source, tuple | list | Mapping) and len(source):
        parts = list(source.values()) if isinstance(source, Mapping) else list(source)
        if isinstance(source, list) and not backend.is_array(parts[0]):
            return parts[0]  # a list of batches
        return map_arrays(source, lambda a: a[:2], backend.is_array)
    if isinstance(source, np.ndarray):
        return source[:2]
    if hasattr(source, "__iter__") and not hasattr(source, "__next__"):
        return next(iter(source), None)
    return None
