"""What a hand-written loop called since its last step. What a forward was for is known only by what follows it."""

import weakref
from collections.abc import Iterator
from typing import Any

from sleuth.adapters.listening.calls import Calls, Heard
from sleuth.core.observation import Phase
from sleuth.core.observation.calls import WITH_GRAPH, WITHOUT_GRAPH, CallKind


class LoopCalls:
    def __init__(self) -> None:
        self._calls = Calls()
        self._open: bool | None = None  # the mode of a forward of which it is not known yet what it was for
        self._input: Any = None  # of that forward, weakly
        self._erased_backwards = 0
        self.trained_in: bool | None = None  # the mode of the last forward that was trained on
        self.fresh = False  # a backward came since the last step, and nobody cleared what it left
        self.erased = False

    @property
    def backwards(self) -> int:
        return self._calls.count(CallKind.BACKWARD)

    def forward(self, training: bool, given: Any = None) -> None:
        """`given`: its input. Whoever asks for the same thing again wants the noise."""
        self.settle()
        self._open = training
        try:
            self._input = weakref.ref(given)
        except TypeError:
            self._input = None

    def settle(self) -> CallKind | None:
        """No backward came: the forward was for something else than training. Which kind of validation, if it was one."""
        if self._open is None:
            return None
        kind = CallKind.VALIDATE_IN_TRAIN if self._open else CallKind.VALIDATE
        self._said(kind)
        return kind

    def backward(self) -> None:
        if self._open is not None:
            self.trained_in = self._open
            self._said(CallKind.FORWARD if self._open else CallKind.FORWARD_IN_EVAL)
        self._calls.say(CallKind.BACKWARD)
        self.fresh, self.erased = True, False

    def _said(self, forward: CallKind) -> None:
        self._open = None
        self._calls.say(forward)
        self._calls.note_input(None if self._input is None else self._input())

    def cleared(self) -> None:
        self._calls.say(CallKind.ZERO_GRAD)
        if self.fresh:
            self._erased_backwards += 1
            self.erased = True
        self.fresh = False

    def clipped(self, stepped: bool) -> CallKind:
        """`stepped`: what is clipped was used by a step already."""
        used = CallKind.CLIP_ON_USED_GRADIENT if stepped else CallKind.CLIP_ON_NOTHING
        kind = CallKind.CLIP if self.fresh else used
        self._calls.say(kind)
        return kind

    def take(self) -> Heard:
        """Everything since the last time."""
        heard = self._calls.take(0)
        if self._erased_backwards:
            heard = heard._replace(counts={**heard.counts, CallKind.ERASED_BACKWARD: self._erased_backwards})
        self._erased_backwards, self.fresh, self.erased = 0, False, False
        return heard


def phases(heard: Heard, step: int, *, last: bool = False) -> Iterator[Phase]:
    """Forwards that nothing was trained on, one after the other. `last`: no step followed."""
    forwards = sum(heard.counts.get(kind, 0) for kind in WITH_GRAPH)
    backwards = heard.counts.get(CallKind.BACKWARD, 0)
    for name, length, repeated in zip(heard.names, heard.lengths, heard.repeated, strict=True):
        # One call in evaluation mode may be a validation in one go.
        if name in WITHOUT_GRAPH and (length > 1 or name == CallKind.VALIDATE):
            yield Phase(step, name, length, repeated, forwards, backwards, last=last)
