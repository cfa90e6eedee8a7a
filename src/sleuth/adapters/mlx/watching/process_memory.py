"""How much memory the process holds, read some times a second, and what grew when it rises."""

import os
import sys
import time
from collections.abc import Mapping

from sleuth.adapters.mlx.watching.memory_holders import Entry, grown_since, inventory
from sleuth.core.observation import Absent, Holder, Memory

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


class ProcessMemory:
    def __init__(self) -> None:
        try:
            self._file: int | None = os.open(STATUS, os.O_RDONLY)
        except OSError:
            self._file = None
        self._told = False
        self._began = self._due = time.perf_counter()
        self._base: int | None = None
        self._alarm = WORTH_A_LOOK
        self._looks = 0
        self._before: Mapping[str, Entry] = {}

    def after_step(self, step: int) -> Memory | Absent | None:
        if self._file is None:
            told, self._told = self._told, True
            return None if told else Absent(Memory, UNREADABLE)
        now = time.perf_counter()
        if now < self._due:
            return None
        self._due = now + max(LEAST_SECONDS, SHARE_OF_RUN * (now - self._began))
        return self._read(self._file, step)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self, file: int, step: int) -> Memory:
        """Passes over the data are not known: MLX has no loader of its own that could be heard."""
        _, resident, shared, *_ = os.pread(file, 128, 0).split()
        held = (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")
        self._base = held if self._base is None or step < WARM_UP_STEPS else min(self._base, held)
        holders: tuple[Holder, ...] = ()
        if held - self._base >= self._alarm and self._looks < LOOKS:
            self._alarm *= 2
            self._looks += 1
            frame = sys._getframe(1)
            if self._looks > 1:
                holders = grown_since(frame, self._before)
            else:
                self._before = inventory(frame)
        return Memory(step, held, holders=holders)
