"""The memory that the process holds, read after a step of Keras'."""

from collections.abc import Callable, Sequence

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.keras import backend
from sleuth.adapters.listening.recorder import Note, Recorder


class MemoryReadings(Recorder):
    def __init__(self, step: Callable[[], int], passes: Callable[[], int]) -> None:
        self._step, self._passes = step, passes
        self._memory = _process_memory()
        self._found: list[Note] = []

    def after_step(self, number: int) -> None:
        found = self._memory.after_step(self._step(), self._passes())
        if found is not None:
            self._found.append(found)

    def take(self) -> Sequence[Note]:
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        self._memory.close()


def _process_memory() -> ProcessMemory:
    """Arrays of jax cannot be told by what they hold of memory."""
    if backend.name() != "torch":
        return ProcessMemory()
    from sleuth.adapters.torch.watching.memory_holders import grown_since, inventory

    return ProcessMemory(inventory, grown_since)
