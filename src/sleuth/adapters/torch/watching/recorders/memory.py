"""How much memory the process holds, read some times a second, and what grew when it rises."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from sleuth.adapters.torch.watching.ear import Loop, Note, Recorder
from sleuth.adapters.torch.watching.memory_holders import Entry, grown_since, inventory
from sleuth.core.observation import Absent, Holder, Memory

STATUS = "/proc/self/statm"
UNREADABLE = "on this system the memory that a process holds at a moment cannot be read"
# A reading takes some microseconds; a run of hours takes fewer and fewer of them.
LEAST_SECONDS = 0.02
SHARE_OF_RUN = 1 / 512
# Allocators, caches of kernels and the first batches come to rest within so many steps.
WARM_UP_STEPS = 20
# A rise worth a look at the user's variables; each further look asks for twice as much.
WORTH_A_LOOK = 8 << 20
LOOKS = 10


class ProcessMemory(Recorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._file = _opened()
        self._began = self._due = time.perf_counter()
        self._base: int | None = None
        self._alarm = WORTH_A_LOOK
        self._looks = 0
        self._before: Mapping[str, Entry] = {}
        self._passes = 0
        self._source = self._place = self._latest_source = self._latest_place = 0
        self._notes: list[Note] = [] if self._file is not None else [Absent(Memory, UNREADABLE)]

    def batch(self, iterator: Any, batch: Any) -> None:
        # The place of the batch in its pass: also workers that live on begin to count anew.
        self._latest_source, self._latest_place = id(iterator._dataset), iterator._num_yielded

    def after_step(self, number: int) -> None:
        if self._latest_place:
            self._count_passes()
        now = time.perf_counter()
        if now >= self._due and self._file is not None:
            self._due = now + max(LEAST_SECONDS, SHARE_OF_RUN * (now - self._began))
            self._read(self._file)

    def take(self) -> Sequence[Note]:
        if not self._notes:
            return ()
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _count_passes(self) -> None:
        """The loader that a step took its batch from is the training's; one that is read between steps is not."""
        if self._source != self._latest_source:
            self._passes = max(self._passes, 1)
        elif self._latest_place < self._place:
            self._passes += 1
        self._source, self._place = self._latest_source, self._latest_place
        self._latest_place = 0

    def _read(self, file: int) -> None:
        held = _held(file)
        self._base = held if self._base is None or self.loop.steps < WARM_UP_STEPS else min(self._base, held)
        rose = held - self._base
        holders: tuple[Holder, ...] = ()
        if rose >= self._alarm and self._looks < LOOKS:
            self._alarm *= 2
            self._looks += 1
            frame = sys._getframe(1)
            if self._looks > 1:
                holders = grown_since(frame, self._before)
            else:
                self._before = inventory(frame)
        self._notes.append(Memory(self.loop.steps, held, self._passes, holders))


def _opened() -> int | None:
    try:
        return os.open(STATUS, os.O_RDONLY)
    except OSError:
        return None


def _held(file: int) -> int:
    """The process's own pages, and what its tensors take on a device."""
    _, resident, shared, *_ = os.pread(file, 128, 0).split()
    held = (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")
    return held + (torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0)
