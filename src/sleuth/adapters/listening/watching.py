"""A watch as the rest of sleuth knows it: what a listener recorded waits here and becomes observations on another thread."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from sleuth.adapters.listening.listener import Listener
from sleuth.core.contract.adapter import Watching
from sleuth.core.observation import Observation

# Steps that may wait to be drained.
MOST_WAITING = 4096
# Looks hold tables or copies of all tensors: they may take so much.
MOST_BYTES_WAITING = 64 << 20


class _Waiting(NamedTuple):
    record: Any
    size: int = 0
    is_step: bool = False


class ListeningWatch(Watching):
    """`put` is called on the training thread, `drain` on another one. When nobody drains, whole steps are dropped and counted."""

    most_waiting: int = MOST_WAITING
    most_bytes: int = MOST_BYTES_WAITING

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.dropped = 0
        self._waiting: deque[_Waiting] = deque()
        self._bytes = self._steps_waiting = 0
        self._lost: list[str] = []  # what could not be made into observations

    @property
    def own_seconds(self) -> float:  # type: ignore[override]
        return self.listener.own_seconds

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.listener.steps

    @property
    def looks(self) -> int:  # type: ignore[override]
        return self.listener.looks

    @property
    def trouble(self) -> str | None:  # type: ignore[override]
        error = self.listener.gave_up
        return None if error is None else f"{type(error).__name__}: {error}"

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.listener.remarks, *self._lost)

    def put(self, record: Any, size: int = 0) -> None:
        """What a step left behind; `size`: bytes that it holds beside plain numbers."""
        if self._steps_waiting >= self.most_waiting or (size and self._bytes >= self.most_bytes):
            self.dropped += 1
            return
        self._bytes += size
        self._steps_waiting += 1
        self._waiting.append(_Waiting(record, size, is_step=True))

    def say(self, *said: Any) -> None:
        """Observations or records between steps, in their order. Few in number: they are never dropped."""
        self._waiting.extend(_Waiting(record) for record in said)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            record, size, is_step = self._waiting.popleft()
            self._bytes -= size
            self._steps_waiting -= is_step
            found += [record] if isinstance(record, Observation) else self.made_of(self.to_observations(record))
        return found

    @abstractmethod
    def to_observations(self, record: Any) -> Iterable[Observation]:
        """Of one step."""

    def made_of(self, observations: Iterable[Observation]) -> list[Observation]:
        """Whatever goes wrong in one step's notes, the next step's are wanted."""
        found = []
        try:
            for observation in observations:
                found.append(observation)
        except Exception as error:
            self._lost = [f"notes of a step were lost: {type(error).__name__}: {error}"]
        return found
