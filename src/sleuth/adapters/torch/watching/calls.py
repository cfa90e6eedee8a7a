"""What the loop called since its last step, in order, and what can be read off that."""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from sleuth.core.observation import Phase

# A loop that never steps must not fill the memory with what it called.
MOST_CALLS = 4096
# Calls of the model that build a graph, and those that do not.
WITH_GRAPH = ("forward", "forward-in-eval")
WITHOUT_GRAPH = ("validate", "validate-in-train")
# A row of forwards before one of these was made for it.
USED = ("backward", "gradient", "step")


class Heard(NamedTuple):
    names: tuple[str, ...]
    lengths: tuple[int, ...]  # how often in a row each of them came
    repeated: tuple[int, ...]  # how many of those were given the very input of the call before
    counts: Mapping[str, int]


NOTHING_HEARD = Heard((), (), (), {})


class Calls:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._names: list[str] = []
        self._lengths: list[int] = []
        self._repeated: list[int] = []
        self._last_input: Any = None

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def last(self) -> str:
        return self._names[-1] if self._names else ""

    def say(self, kind: str, times: int = 1) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + times
        if self._names and (self._names[-1] == kind or len(self._names) >= MOST_CALLS):
            self._lengths[-1] += times
            return
        self._names.append(kind)
        self._lengths.append(times)
        self._repeated.append(0)

    def unsay(self, kind: str) -> None:
        """It was somebody else's. Does nothing when something else was said since."""
        if self.counts.get(kind, 0) > 0:
            self.counts[kind] -= 1
        if not self._names or self._names[-1] != kind:
            return
        self._lengths[-1] -= 1
        if not self._lengths[-1]:
            self._names.pop()
            self._lengths.pop()
            self._repeated.pop()

    def note_input(self, args: tuple[Any, ...]) -> None:
        """Whoever asks a model for the same thing again and again wants its noise."""
        given = args[0] if args and isinstance(args[0], torch.Tensor) else None
        before = self._last_input() if self._last_input is not None else None
        if given is not None and given is before:
            self._repeated[-1] += 1
        self._last_input = None if given is None else weakref.ref(given)

    def without_graph(self) -> None:
        """The model that was just called built none: nothing in it is trained."""
        if self.last in WITH_GRAPH:
            kind = "validate" if self.last == "forward-in-eval" else "validate-in-train"
            self.unsay(self.last)
            self.say(kind)

    def take(self, optimiser: int) -> Heard:
        """Everything since the last time; `optimiser` is the one that stepped."""
        heard = self.heard(optimiser)
        self.counts, self._names, self._lengths, self._repeated = {}, [], [], []
        self._last_input = None
        return heard

    def heard(self, optimiser: int | None) -> Heard:
        names, counts = self._names, self.counts
        if any("@" in kind for kind in counts):
            names = [_whose(name, optimiser) for name in names]
            counts = {}
            for kind, count in self.counts.items():
                counts[_whose(kind, optimiser)] = counts.get(_whose(kind, optimiser), 0) + count
        return Heard(tuple(names), tuple(self._lengths), tuple(self._repeated), counts)


def _whose(name: str, optimiser: int | None) -> str:
    """`name@number` is what was done for one optimiser."""
    kind, _, number = name.partition("@")
    return kind if not number or optimiser is None or int(number) == optimiser else f"{kind}-of-another"


def phases(step: int, optimiser: int, heard: Heard, after_last: bool) -> Iterator[Phase]:
    """Rows of forwards that nothing was trained on."""
    backwards = heard.counts.get("backward", 0)
    forwards = sum(heard.counts.get(kind, 0) for kind in WITH_GRAPH)
    following = (*heard.names, "")[1:]
    for name, length, repeated, after in zip(heard.names, heard.lengths, heard.repeated, following, strict=False):
        unused = name in WITH_GRAPH and not after.startswith(USED)
        # One call in evaluation mode may be a validation in one go.
        if (length > 1 and (unused or name in WITHOUT_GRAPH)) or (unused and name == "forward-in-eval"):
            yield Phase(step, name, length, repeated, forwards, backwards, optimiser, after_last)
