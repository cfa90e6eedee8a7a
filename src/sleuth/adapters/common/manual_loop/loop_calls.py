"""The order of the loop's calls, in the words of Step.calls. What a forward was for is known only by what follows it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sleuth.core.observation import Phase

# Calls that belong together before a step; of a loop that never steps only the last ones are told.
TAIL = 64


class Heard(NamedTuple):
    names: tuple[str, ...]
    counts: dict[str, int]
    phases: tuple[Phase, ...]
    training: bool


@dataclass
class Row:
    """Forwards that nothing was trained on, one after the other."""

    kind: str
    calls: int = 0
    repeated: int = 0


class Order:
    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()
        self._rows: list[Row] = []
        self._open: bool | None = None  # the mode of a forward of which it is not known yet what it was for
        self._input = self._input_before = 0  # ids: whoever asks for the same thing again wants the noise
        self.trained_in: bool | None = None  # the mode of the last forward that was trained on
        self.fresh = False  # a backward came since the last step, and nobody cleared what it left
        self.erased = False

    @property
    def backwards(self) -> int:
        return self._counts["backward"]

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._counts)

    def forward(self, training: bool, given: int = 0) -> None:
        self.settle()
        self._open = training
        self._input_before, self._input = self._input, given

    def settle(self) -> str | None:
        """No backward came: the forward was for something else than training. Which kind of validation, if it was one."""
        if self._open is None:
            return None
        kind = "validate-in-train" if self._open else "validate"
        self._open = None
        if not self._rows or self._rows[-1].kind != kind or not self._names or self._names[-1] != kind:
            self._rows.append(Row(kind))
        self._rows[-1].calls += 1
        self._rows[-1].repeated += self._input == self._input_before != 0
        self._say(kind)
        return kind

    def backward(self) -> None:
        if self._open is not None:
            self.trained_in = self._open
            self._say("forward" if self._open else "forward-in-eval")
        self._open = None
        self._say("backward")
        self.fresh, self.erased = True, False

    def cleared(self) -> None:
        self._say("zero_grad")
        if self.fresh:
            self._counts["erased-backward"] += 1
            self.erased = True
        self.fresh = False

    def clipped(self, stepped: bool) -> str:
        """`stepped`: what is clipped was used by a step already."""
        kind = "clip" if self.fresh else "clip-on-used-gradient" if stepped else "clip-on-nothing"
        self._say(kind)
        return kind

    def _say(self, kind: str) -> None:
        self._counts[kind] += 1
        if not self._names or self._names[-1] != kind:
            self._names.append(kind)

    def take(self, step: int, *, last: bool = False) -> Heard:
        """Everything since the last time."""
        if last:
            self.settle()
        counts = dict(self._counts)
        heard = Heard(tuple(self._names[-TAIL:]), counts, tuple(self._phases(step, last)), self.trained_in is not False)
        self._names, self._counts, self._rows = [], Counter(), []
        self.fresh = self.erased = False
        return heard

    def _phases(self, step: int, last: bool) -> Iterator[Phase]:
        forwards = self._counts["forward"] + self._counts["forward-in-eval"]
        for row in self._rows:
            # One call in evaluation mode may be a validation in one go.
            if row.calls > 1 or row.kind == "validate":
                yield Phase(step, row.kind, row.calls, row.repeated, forwards, self.backwards, last=last)
