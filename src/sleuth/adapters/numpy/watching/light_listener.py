"""Steps that are only listened to lightly: of each its loss, its rate and its time are kept, and whatever is new makes the watch
listen in full again.

All of it has to be paid at every step: few functions, each short, no stopwatch, no lines, no order of calls. What the loop is
like shows in the steps that are heard in full, and those come again and again.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sleuth.adapters.common.manual_loop.notes import Told, told_by
from sleuth.adapters.listening.steps import build_step
from sleuth.core.observation import Step
from sleuth.core.observation.calls import WITHOUT_GRAPH, CallKind

if TYPE_CHECKING:
    from sleuth.adapters.numpy.watching.listener import NumpyListener


class LightStep(NamedTuple):
    """What such a step leaves behind: neither calls nor their number is known."""

    step: int
    loss: float | None
    lr: float | None
    seconds: float
    waited: Mapping[str, float]  # seconds, for data
    training: bool

    def to_step(self) -> Step:
        return build_step(self.step, self.loss, lr=self.lr, training=self.training, seconds=self.seconds, phases=self.waited)


class LightListener:
    """Hears in the place of NumpyListener while `on`, through the handlers in light_calls."""

    def __init__(self, listener: "NumpyListener") -> None:
        self.listener = listener
        self.on = False
        self.until = 0  # the step that is listened to in full again
        self.steps = 0  # heard so, in all
        self._passed = 0  # since the last one that was heard in full
        self.usual: frozenset[str] = frozenset()
        self.validates = False
        self.usual_backwards = 1
        self.is_open = False  # a forward of which it is not known yet what it was for
        self.tentative: list[Told] = []  # as in Notes
        self.parts: list[list[Told]] = []
        self.optimiser: Any = None
        self.rate: float | None = None
        self.training = True

    def begin(self, usual: Mapping[str, int], training: bool, rate: float | None, optimiser: Any) -> None:
        """`usual`: what the last step that was heard in full called."""
        self.on, self.training, self.rate, self.optimiser = True, training, rate, optimiser
        self.usual = frozenset(usual)
        self.validates = any(kind in usual for kind in WITHOUT_GRAPH)
        self.usual_backwards = max(1, usual.get(CallKind.BACKWARD, 1))
        self._begin_step()

    def _begin_step(self) -> None:
        self.is_open, self.tentative, self.parts = False, [], []

    def wake(self) -> None:
        """In the middle of a step. What was heard of it so far is handed over."""
        self.on = False
        self.listener.resume(self.parts, self.tentative, is_open=self.is_open)

    def leave(self) -> None:
        """At the end of a watch. A loop that changes the weights itself has no next forward to end its last step."""
        if self.on and self.parts and not self.listener.writes_heard:
            self.end_step(None)
        self.on = False

    def take_passed(self) -> int:
        passed, self._passed = self._passed, 0
        return passed

    def add_loss(self, number: int, value: float) -> None:
        late = self.parts and not self.parts[-1] and not self.tentative
        (self.parts[-1] if late else self.tentative).append((number, value))

    def went_back(self) -> None:
        self.parts.append(self.tentative)
        self.tentative, self.is_open = [], False
        if len(self.parts) > 2 * self.usual_backwards:  # the loop has become another one
            self.wake()

    def end_step(self, returned: Any) -> None:
        """`returned`: by whatever wrote the weights."""
        parts = self.parts or ([self.tentative] if self.tentative else [])
        loss = parts[0][0][1] if len(parts) == 1 and len(parts[0]) == 1 else told_by(parts)
        self._begin_step()
        self.steps += 1
        self._passed += 1
        self.listener.pass_step(loss, returned)
