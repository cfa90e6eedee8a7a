"""Where the batches come from that `fit` and `evaluate` read, and how long a step waits for its own: heard at the iterator that
reads them."""

import weakref
from typing import Any

import numpy as np
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.trainers.epoch_iterator import EpochIterator

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.compat import PRIVATE
from sleuth.core.runtime.tree import leaves


class DataFeed:
    """The batch that was read last before a step is that step's; one that a validation reads is nobody's."""

    def __init__(self) -> None:
        self.passes = 0
        self._seconds: float | None = None
        self._begin: int | None = None  # of the batches of a pass, this one
        self._iterator: weakref.ref[Any] = weakref.ref(DataFeed)

    def read(self, iterator: Any, begin: int, seconds: float) -> None:
        """A batch was read, in so many seconds."""
        self._seconds, self._begin = seconds, begin
        if self._iterator() is not iterator:
            self._iterator = weakref.ref(iterator)

    def taken(self) -> dict[str, float]:
        """By the step that ends now."""
        begin, self._begin = self._begin, None
        if begin is None or self._seconds is None:
            return {}
        self.passes += begin == 0
        # On jax the batch itself is read later, inside the step.
        if backend.name() != "torch":
            return {}
        return {"data" if begin else "first-data": self._seconds}

    @property
    def epoch(self) -> int:
        """The pass that goes on."""
        return self.passes + (self._begin == 0)

    @property
    def reader(self) -> Any:
        """What Keras has made of the data it was given; None: a batch was handed over by itself."""
        iterator = self._iterator()
        return iterator.data_adapter if self._begin is not None and isinstance(iterator, EpochIterator) else None

    @property
    def source(self) -> Any:
        """The same for all that comes from the same data."""
        reader = self.reader
        if isinstance(reader, ArrayDataAdapter):
            return next((id(array) for _, array in leaves(reader._inputs, backend.is_array)), id(reader))
        return id(getattr(reader, "py_dataset", None) or reader)

    def is_validation_of(self, model: Any) -> bool:
        """Did somebody give it to `fit` as such?"""
        iterator = self._iterator()
        return iterator is not None and iterator is getattr(model, "_eval_epoch_iterator", None)

    def positions(self, rows: int) -> np.ndarray | None:
        """Of the samples of this batch among all, where they come in the order in which they were given."""
        reader = self.reader
        if not isinstance(reader, ArrayDataAdapter) or reader._shuffle or self._begin is None:
            return None
        first = self._begin * reader._batch_size
        return np.arange(first, min(first + rows, reader._num_samples))

    def available(self, data: Any) -> int | None:
        """Samples in all, where they can be counted."""
        reader = self.reader
        if isinstance(reader, ArrayDataAdapter):
            return int(reader._num_samples)
        batches = getattr(reader, "num_batches", None)
        return int(batches) * rows_of(data) if batches else None


def rows_of(data: Any) -> int:
    return next((int(a.shape[0]) for _, a in leaves(data, backend.is_array) if len(a.shape)), 0)


def reading_class() -> type:
    """Whose `__next__` Keras' trainers call."""
    if backend.name() == "jax":
        return PRIVATE.if_imported("keras.src.backend.jax.trainer.JAXEpochIterator") or EpochIterator
    return EpochIterator
