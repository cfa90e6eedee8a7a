"""How much memory the process holds, read some times a second."""

import os
import time

from sleuth.core.observation import Memory

STATUS = "/proc/self/statm"
# A reading takes some microseconds; a run of hours takes fewer and fewer of them.
LEAST_SECONDS = 0.02
SHARE_OF_RUN = 1 / 512


class ProcessMemory:
    def __init__(self) -> None:
        try:
            self._file: int | None = os.open(STATUS, os.O_RDONLY)
        except OSError:  # another system
            self._file = None
        self._began = self._due = time.perf_counter()

    def read(self, step: int, passes: int) -> Memory | None:
        now = time.perf_counter()
        if self._file is None or now < self._due:
            return None
        self._due = now + max(LEAST_SECONDS, SHARE_OF_RUN * (now - self._began))
        _, resident, shared, *_ = os.pread(self._file, 128, 0).split()
        return Memory(step, (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE"), passes)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
