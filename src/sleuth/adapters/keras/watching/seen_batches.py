"""Batches that a training or a validation was given: how they are copied, and the first ones, described as an examination reads
its data. They are copied at once and measured off the training thread."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np

from sleuth.adapters.common.first_batches import ENOUGH_SAMPLES, MOST_BATCHES, together
from sleuth.adapters.common.reservoir import rows_that_fit
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.watching.data_feeding import rows_of
from sleuth.adapters.listening.recorder import Note, Recorder
from sleuth.core.observation import Observation, Split
from sleuth.core.reading.batch_facts import contents, describe_batch
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts

Noted = list[tuple[int, Parts]]  # with the step they were given to


def copied_parts(data: Any, *, first: bool) -> Parts | None:
    """Copies, since whoever made the batch may write over it. None: too large for a single sample, or not of numbers."""
    x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
    arrays = [a for _, a in leaves((x, y), backend.is_array)]
    if not arrays or any(_kind(a) not in "fiub" for a in arrays):
        return None
    size = sum(int(getattr(a, "nbytes", 0)) for a in arrays)
    rows = rows_that_fit(size, {a.shape[0] if len(a.shape) else 0 for a in arrays}, first=first)
    if rows == 0:
        return None
    given, wanted = map_arrays((x, y), lambda a: np.array(backend.values(a if rows is None else a[:rows])), backend.is_array)
    return Parts(given, wanted, (given, wanted))


def size_of(parts: Parts) -> int:
    return sum(array.nbytes for _, array in leaves(parts.raw, lambda thing: isinstance(thing, np.ndarray)))


def _kind(array: Any) -> str:
    word = backend.dtype(array)
    return "f" if "float" in word else "b" if word == "bool" else "i" if "int" in word else "O"


class FirstBatches(Recorder):
    def __init__(self, step: Callable[[], int]) -> None:
        self._step = step
        self._noted: Noted = []
        self._samples = 0
        self._is_over = False
        self._described: Noted = []  # waits to be told

    def batch(self, source: Any, batch: Any) -> None:
        if self._is_over:
            return
        parts = copied_parts(batch, first=False)
        if parts is not None:
            self._noted.append((self._step(), parts))
            self._samples += rows_of(parts.inputs)
        if parts is None or self._samples >= ENOUGH_SAMPLES or len(self._noted) >= MOST_BATCHES:
            self.close()

    def close(self) -> None:
        self._is_over = True
        self._described, self._noted = self._described or self._noted, []

    def take(self) -> Sequence[Note]:
        if not self._described:
            return ()
        described, self._described = self._described, []
        return (partial(_observations, described),)


def _observations(noted: Noted) -> Iterator[Observation]:
    # The adapter itself opens watches.
    from sleuth.adapters.keras.adapter import KerasAdapter

    adapter = KerasAdapter()
    yield from together([describe_batch(contents(parts, adapter), Split.TRAIN, step, adapter) for step, parts in noted])
