"""What the loop called since its last step, in order, and what can be read off that."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sleuth.core.observation import Phase
from sleuth.core.observation.calls import WITH_GRAPH, WITHOUT_GRAPH, CallKind

# A loop that never steps must not fill the memory with what it called.
MOST_CALLS = 4096
# A row of forwards before one of these was made for it.
USED = ("backward", "gradient", "step")

# What was called, and for which optimiser, where that makes a difference.
Said = tuple[CallKind, int | None]


class Heard(NamedTuple):
    names: tuple[CallKind, ...]
    lengths: tuple[int, ...]  # how often in a row each of them came
    repeated: tuple[int, ...]  # how many of those were given the very input of the call before
    counts: Mapping[str, int]  # by CallKind

    def phases(
        self, step: int, optimiser: int = 0, *, last: bool = False, alone: Sequence[CallKind] = ()
    ) -> Iterator[Phase]:
        """Rows of forwards that nothing was trained on. `last`: no step followed. `alone`: told also where it is one call."""
        backwards = self.counts.get(CallKind.BACKWARD, 0)
        forwards = sum(self.counts.get(kind, 0) for kind in WITH_GRAPH)
        following = (*self.names, "")[1:]
        for name, length, repeated, after in zip(self.names, self.lengths, self.repeated, following, strict=True):
            unused = name in WITH_GRAPH and not after.startswith(USED)
            # One call in evaluation mode may be a validation in one go.
            if (length > 1 and (unused or name in WITHOUT_GRAPH)) or (unused and name == CallKind.FORWARD_IN_EVAL) or name in alone:
                yield Phase(step, name, length, repeated, forwards, backwards, optimiser, last)


NOTHING_HEARD = Heard((), (), (), {})


class Calls:
    def __init__(self) -> None:
        self._counts: dict[Said, int] = {}
        self._names: list[Said] = []
        self._lengths: list[int] = []
        self._repeated: list[int] = []
        self._last_input: Any = None

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def last(self) -> CallKind | None:
        return self._names[-1][0] if self._names else None

    def count(self, kind: CallKind) -> int:
        return sum(count for (name, _), count in self._counts.items() if name == kind)

    def say(self, kind: CallKind, times: int = 1, optimiser: int | None = None) -> None:
        said = (kind, optimiser)
        self._counts[said] = self._counts.get(said, 0) + times
        if self._names and (self._names[-1] == said or len(self._names) >= MOST_CALLS):
            self._lengths[-1] += times
            return
        self._names.append(said)
        self._lengths.append(times)
        self._repeated.append(0)

    def unsay(self, kind: CallKind) -> None:
        """It was somebody else's. Does nothing to the order when something else was said since."""
        said = (kind, None)
        if self._counts.get(said, 0) > 0:
            self._counts[said] -= 1
        if not self._names or self._names[-1] != said:
            return
        self._lengths[-1] -= 1
        if not self._lengths[-1]:
            self._names.pop()
            self._lengths.pop()
            self._repeated.pop()

    def correct(self, kind: CallKind, other: CallKind) -> None:
        """All that was said as the one has turned out to be the other."""
        self._names = [(other, number) if name == kind else (name, number) for name, number in self._names]
        for said in [said for said in self._counts if said[0] == kind]:
            self._counts[(other, said[1])] = self._counts.pop(said)

    def note_input(self, given: Any) -> None:
        """Of the call that was just said. Whoever asks a model for the same thing again and again wants its noise."""
        before = self._last_input() if self._last_input is not None else None
        if given is not None and given is before and self._repeated:
            self._repeated[-1] += 1
        self._last_input = None if given is None else _reference(given)

    def without_graph(self) -> None:
        """The model that was just called built none: nothing in it is trained."""
        last = self.last
        if last in WITH_GRAPH:
            self.unsay(last)
            self.say(CallKind.VALIDATE if last == CallKind.FORWARD_IN_EVAL else CallKind.VALIDATE_IN_TRAIN)

    def take(self, optimiser: int) -> Heard:
        """Everything since the last time; `optimiser` is the one that stepped."""
        heard = self.heard(optimiser)
        self._counts, self._names, self._lengths, self._repeated = {}, [], [], []
        self._last_input = None
        return heard

    def heard(self, optimiser: int | None = None) -> Heard:
        """None: nobody steps, and everything counts as one's own."""
        counts: dict[str, int] = {}
        for said, count in self._counts.items():
            kind = _whose(said, optimiser)
            counts[kind] = counts.get(kind, 0) + count
        return Heard(tuple(_whose(said, optimiser) for said in self._names), tuple(self._lengths), tuple(self._repeated), counts)


def _whose(said: Said, optimiser: int | None) -> CallKind:
    kind, number = said
    return kind if number is None or optimiser is None or number == optimiser else kind.of_another


def _reference(given: Any) -> Any:
    """Weak, where the array allows it: nothing of the user's is held on to."""
    try:
        return weakref.ref(given)
    except TypeError:
        return lambda: given
