"""Answers that are kept until what they were made of changes, and that are not made anew more often than their cost allows."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

# At most this share of the time goes into making one answer again and again: a training may need the processor.
SHARE = 0.2

Answer = TypeVar("Answer")


@dataclass
class _Kept(Generic[Answer]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: Hashable = None
    answer: Answer | None = None
    not_before: float = 0.0


class Paced(Generic[Answer]):
    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: OrderedDict[Hashable, _Kept[Answer]] = OrderedDict()
        self._most, self._clock = most, clock
        self._lock = threading.Lock()

    def get(self, key: Hashable, version: Hashable, make: Callable[[], Answer]) -> tuple[Hashable, Answer]:
        """The answer with the version it was made of, which may be a little older than the one that is asked for."""
        kept = self._of(key)
        with kept.lock:
            now = self._clock()
            if kept.answer is None or (kept.version != version and now >= kept.not_before):
                kept.answer, kept.version = make(), version
                kept.not_before = self._clock() + (self._clock() - now) * (1 / SHARE - 1)
            return kept.version, kept.answer

    def _of(self, key: Hashable) -> _Kept[Answer]:
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept
