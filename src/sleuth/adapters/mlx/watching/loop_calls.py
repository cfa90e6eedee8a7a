"""What the loop called since its last step, in order, and what can be read off that."""

from collections.abc import Iterator
from typing import Any

import mlx.core as mx

from sleuth.adapters.mlx.user_line import users_line
from sleuth.core.observation import Call, Observation, Phase

# A loop that never steps must not fill the memory with what it called.
MOST_CALLS = 4096
VALIDATIONS = ("validate", "validate-in-train")


class Calls:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.names: list[str] = []
        self._lengths: list[int] = []
        self._repeated: list[int] = []
        self._input: Any = None

    @property
    def last(self) -> str:
        return self.names[-1] if self.names else ""

    def say(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if self.last == kind or len(self.names) >= MOST_CALLS:
            self._lengths[-1] += 1
            return
        self.names.append(kind)
        self._lengths.append(1)
        self._repeated.append(0)

    def correct(self, kind: str, other: str) -> None:
        """What was said has turned out to be something else."""
        self.names = [other if name == kind else name for name in self.names]
        if kind in self.counts:
            self.counts[other] = self.counts.pop(kind)

    def note_input(self, args: tuple[Any, ...]) -> None:
        """Whoever asks a model for the same thing again and again wants its noise."""
        given = args[0] if args and isinstance(args[0], mx.array) else None
        if given is not None and given is self._input:
            self._repeated[-1] += 1
        self._input = given

    def phases(self, step: int, optimiser: int, *, last: bool = False) -> Iterator[Phase]:
        """Several calls in a row without gradients. One in evaluation mode may be a validation in one go."""
        backwards = self.counts.get("backward", 0)
        for name, length, repeated in zip(self.names, self._lengths, self._repeated, strict=True):
            if name in VALIDATIONS and (length > 1 or name == "validate"):
                yield Phase(step, name, length, repeated, backwards, backwards, optimiser, last)

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


class Story:
    """What the loop called since its last step, the line of the first call of each kind, and what else is to be told of it."""

    def __init__(self) -> None:
        self.calls = Calls()
        self.places: dict[str, Call] = {}
        self.notes: list[Observation] = []

    def say(self, kind: str, step: int) -> None:
        self.calls.say(kind)
        if kind not in self.places:
            self.place(kind, Call(kind, step, users_line()))

    def place(self, kind: str, call: Call | None) -> None:
        if kind not in self.places and call is not None:
            self.places[kind] = Call(kind, call.step, call.location)
            self.notes.append(self.places[kind])

    def clear(self) -> None:
        """The step is told."""
        self.calls.clear()
        self.notes = []
