"""How long a step waits for its batch, and how often the data are read: heard at the iterator that `fit` reads."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from keras.src.trainers.epoch_iterator import EpochIterator

from sleuth.adapters.keras.patching import replaced


class Waits:
    """The batch that was read last before a step is that step's; one that a validation reads is nobody's."""

    def __init__(self) -> None:
        self.passes = 0
        self._seconds: float | None = None
        self._is_first = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        with replaced(EpochIterator, "__next__", self._timed):
            yield

    def _timed(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def next_batch(iterator: Any) -> Any:
            began = time.perf_counter()
            found = plain(iterator)
            self._seconds, self._is_first = time.perf_counter() - began, found[0] == 0
            return found

        return next_batch

    def taken(self) -> dict[str, float]:
        """By the step that ends now."""
        seconds, self._seconds = self._seconds, None
        if seconds is None:
            return {}
        self.passes += self._is_first
        return {"first-data" if self._is_first else "data": seconds}
