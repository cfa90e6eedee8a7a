"""What waits to be told: notes of steps, in bounded memory, and single observations among them."""

from collections import deque
from typing import Any

from sleuth.adapters.keras.watching.first_batches import Described
from sleuth.adapters.keras.watching.record import Record
from sleuth.core.observation import Observation

# Steps that may wait. Looks hold copies of all weights: fewer of those.
MOST_WAITING = 4096
MOST_BYTES_WAITING = 256 << 20


class Waiting:
    def __init__(self) -> None:
        self.notes: deque[Any] = deque()  # records, descriptions of batches and observations, in their order
        self._bytes = 0
        self.dropped = 0  # steps that there was no room for
        self.lost: str | None = None  # why notes could not be made into observations

    def add(self, record: Record) -> None:
        size = _size(record)
        if len(self.notes) >= MOST_WAITING or (size and self._bytes + size > MOST_BYTES_WAITING):
            self.dropped += 1
        else:
            self._bytes += size
            self.notes.append(record)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self.notes)):
            one = self.notes.popleft()
            if isinstance(one, Record | Described):
                self._bytes -= _size(one)
                found += self._observed(one)
            else:
                found.append(one)
        return found

    def _observed(self, one: Record | Described) -> list[Observation]:
        try:
            return list(one.observations())
        except Exception as error:
            self.lost = f"notes of a step were lost: {type(error).__name__}: {error}"
            return []


def _size(one: Record | Described) -> int:
    return one.look.bytes if isinstance(one, Record) and one.look is not None else 0
