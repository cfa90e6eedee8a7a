"""How much memory the process holds, and how often the training went through its data by then."""

from collections.abc import Sequence
from typing import Any

import torch

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.memory_holders import grown_since, inventory


class MemoryReadings(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._memory = ProcessMemory(inventory, grown_since, _on_device)
        self._passes = 0
        self._source = self._place = self._latest_source = self._latest_place = 0
        self._notes: list[Note] = []

    def batch(self, iterator: Any, batch: Any) -> None:
        # The place of the batch in its pass: also workers that live on begin to count anew.
        self._latest_source, self._latest_place = id(iterator._dataset), iterator._num_yielded

    def after_step(self, number: int) -> None:
        if self._latest_place:
            self._count_passes()
        found = self._memory.after_step(self.loop.steps, self._passes)
        if found is not None:
            self._notes.append(found)

    def take(self) -> Sequence[Note]:
        if not self._notes:
            return ()
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        self._memory.close()

    def _count_passes(self) -> None:
        """The loader that a step took its batch from is the training's; one that is read between steps is not."""
        if self._source != self._latest_source:
            self._passes = max(self._passes, 1)
        elif self._latest_place < self._place:
            self._passes += 1
        self._source, self._place = self._latest_source, self._latest_place
        self._latest_place = 0


def _on_device() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_initialized() else 0
