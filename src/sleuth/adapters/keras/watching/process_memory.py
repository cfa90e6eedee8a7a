"""How much memory the process holds, read some times a second, and what grew when it rises."""

import os
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from sleuth.adapters.keras import backend
from sleuth.core.observation import Absent, Holder, Memory, Observation

STATUS = "/proc/self/statm"
UNREADABLE = "on this system the memory that a process holds at a moment cannot be read"
# A reading takes some microseconds; a run of hours takes fewer and fewer of them.
LEAST_SECONDS = 0.02
SHARE_OF_RUN = 1 / 512
# Allocators and the first batches come to rest within so many steps.
WARM_UP_STEPS = 20
# A rise worth a look at the user's variables; each further look asks for twice as much.
WORTH_A_LOOK = 8 << 20
LOOKS = 10


class Readings:
    def __init__(self, waiting: "deque[Observation]") -> None:
        self._waiting = waiting
        self._file = _opened()
        self._began = self._due = time.perf_counter()
        self._base: int | None = None
        self._alarm, self._looks = WORTH_A_LOOK, 0
        self._before: Mapping[str, Any] = {}
        if self._file is None:
            waiting.append(Absent(Memory, UNREADABLE))

    def after_step(self, step: int, passes: int) -> None:
        now = time.perf_counter()
        if self._file is None or now < self._due:
            return
        self._due = now + max(LEAST_SECONDS, SHARE_OF_RUN * (now - self._began))
        held = _held(self._file)
        self._base = held if self._base is None or step < WARM_UP_STEPS else min(self._base, held)
        holders: tuple[Holder, ...] = ()
        if held - self._base >= self._alarm and self._looks < LOOKS:
            self._alarm *= 2
            self._looks += 1
            holders = self._holders()
        self._waiting.append(Memory(step, held, passes, holders))

    def _holders(self) -> tuple[Holder, ...]:
        """Variables of the user's that have grown. Arrays of jax cannot be told by what they hold of memory."""
        if backend.name() != "torch":
            return ()
        from sleuth.adapters.torch.watching.memory_holders import grown_since, inventory

        frame = sys._getframe(1)
        if self._looks > 1:
            return grown_since(frame, self._before)
        self._before = inventory(frame)
        return ()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _opened() -> int | None:
    try:
        return os.open(STATUS, os.O_RDONLY)
    except OSError:
        return None


def _held(file: int) -> int:
    """The process's own pages."""
    _, resident, shared, *_ = os.pread(file, 128, 0).split()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")
