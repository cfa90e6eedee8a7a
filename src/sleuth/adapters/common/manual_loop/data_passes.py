"""Passes over the batches of a loop: how many, and how long each batch is waited for."""

import inspect
import time
from collections.abc import Generator
from typing import Any

from sleuth.adapters.common.manual_loop.patches import Args, Function, Options


class DataPasses:
    """Handles the calls that begin a pass: a generator comes back, and is listened to."""

    def __init__(self) -> None:
        self.count = 0
        self._waited = self._first = 0.0  # since the last step

    def waited(self) -> dict[str, float]:
        """In the words of Step.seconds."""
        found = {"first-data": self._first} if self._first else {"data": self._waited} if self._waited else {}
        self._waited = self._first = 0.0
        return found

    def begin(self, function: Function, args: Args, options: Options) -> "DataPasses":
        return self

    def failed(self, *, called: bool) -> None: ...

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> Any:
        return self._timed(returned) if inspect.isgenerator(returned) else None

    def _timed(self, batches: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same batches, with the time that each is waited for."""
        self.count += 1
        first = True
        try:
            while True:
                began = time.perf_counter()
                try:
                    batch = next(batches)
                except StopIteration as end:
                    return end.value
                seconds = time.perf_counter() - began
                self._first += seconds if first else 0.0
                self._waited += 0.0 if first else seconds
                first = False
                yield batch
        finally:
            batches.close()
