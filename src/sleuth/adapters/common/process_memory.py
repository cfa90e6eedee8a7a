"""How much memory the process holds, read some times a second, and which of the user's variables grew when it rises."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import psutil

from sleuth.core.observation import Absent, Holder, Memory

UNREADABLE = "on this system the memory that a process holds at a moment cannot be read"
# A reading takes some microseconds; a run of hours takes fewer and fewer of them.
LEAST_SECONDS = 0.02
SHARE_OF_RUN = 1 / 512
# Allocators and the first batches come to rest within so many steps.
WARM_UP_STEPS = 20
# A rise worth a look at the user's variables; each further look asks for twice as much.
WORTH_A_LOOK = 8 << 20
LOOKS = 10

Inventory = Callable[[FrameType], Any]
GrownSince = Callable[[FrameType, Any], tuple[Holder, ...]]


class ProcessMemory:
    """`inventory` notes what the user's variables hold, `grown_since` tells what has become more; both are optional, because
    not every framework's arrays can be told by what they hold. `elsewhere`: bytes on a device."""

    def __init__(
        self,
        inventory: Inventory | None = None,
        grown_since: GrownSince | None = None,
        elsewhere: Callable[[], int] = lambda: 0,
    ) -> None:
        self._inventory, self._grown_since, self._elsewhere = inventory, grown_since, elsewhere
        self._process: psutil.Process | None = psutil.Process()
        self._told_absent = False
        self._began = self._due = time.perf_counter()
        self._base: int | None = None
        self._worth_a_look = WORTH_A_LOOK
        self._looks = 0
        self._before: Any = None

    def after_step(self, step: int, passes: int = 0) -> Memory | Absent | None:
        """`passes` over the training's data, where they are known. None: it is not time for a reading yet."""
        now = time.perf_counter()
        if now < self._due:
            return None
        self._due = now + max(LEAST_SECONDS, SHARE_OF_RUN * (now - self._began))
        held = self._held()
        if held is None:
            told, self._told_absent = self._told_absent, True
            return None if told else Absent(Memory, UNREADABLE)
        self._base = held if self._base is None or step < WARM_UP_STEPS else min(self._base, held)
        return Memory(step, held, passes, self._holders(held - self._base))

    def close(self) -> None:
        """What was noted of the user's variables is let go."""
        self._before = None

    def _held(self) -> int | None:
        """The process's own pages: what it shares with others is not its doing."""
        if self._process is None:
            return None
        try:
            found = self._process.memory_info()
        except psutil.Error:
            self._process = None
            return None
        return found.rss - getattr(found, "shared", 0) + self._elsewhere()

    def _holders(self, rose: int) -> tuple[Holder, ...]:
        if rose < self._worth_a_look or self._looks >= LOOKS or self._inventory is None or self._grown_since is None:
            return ()
        self._worth_a_look *= 2
        self._looks += 1
        frame = sys._getframe(1)
        if self._looks > 1:
            return self._grown_since(frame, self._before)
        self._before = self._inventory(frame)
        return ()
