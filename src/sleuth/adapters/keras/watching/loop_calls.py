"""The order in which a loop calls things, and what that makes of the gradients."""

from collections.abc import Callable

from sleuth.adapters.keras.user_lines import located, spot_now
from sleuth.adapters.listening.calls import Calls, Heard
from sleuth.core.location import Spot
from sleuth.core.observation import Call, Observation, Pending
from sleuth.core.observation.calls import WITH_GRAPH, WITHOUT_GRAPH, CallKind

Say = Callable[[Observation], None]


class LoopCalls:
    """Between one step and the next. `say` is given what is worth telling at once."""

    def __init__(self, say: Say, step: Callable[[], int]) -> None:
        self._say, self._step = say, step
        self._calls = Calls()
        self._fresh = 0  # backwards whose gradients wait for a step
        self._erased = 0
        self._used = False  # a step has used what is there, and nobody cleared it
        self._known: set[tuple[CallKind, int, int]] = set()

    @property
    def heard_forward(self) -> bool:
        return any(self._calls.count(kind) for kind in WITH_GRAPH)

    @property
    def heard_backward(self) -> bool:
        """Since the last step."""
        return bool(self._fresh or self._erased)

    @property
    def erased(self) -> bool:
        return bool(self._erased)

    def note(self, kind: CallKind, spot: Spot | None = None) -> None:
        """At this place; None: at the one where the user's code is now."""
        self._calls.say(kind)
        spot = spot or spot_now()
        # The hash of a code object is slow; its address does.
        key = (kind, 0, 0) if spot is None else (kind, id(spot.code), spot.instruction)
        if key not in self._known:
            self._known.add(key)
            self._say(Call(kind, self._step(), located(spot)))

    def forward(self, *, training: bool, graph: bool, spot: Spot | None = None) -> None:
        if graph:
            self.note(CallKind.FORWARD if training else CallKind.FORWARD_IN_EVAL, spot)
        else:
            self.note(CallKind.VALIDATE_IN_TRAIN if training else CallKind.VALIDATE, spot)

    def cleared(self) -> None:
        self.note(CallKind.ZERO_GRAD)
        self._erased += self._fresh
        self._fresh, self._used = 0, False

    def nothing_left(self) -> None:
        """What the last step has used is gone, whoever has cleared it."""
        self._used = False

    def given_all_the_same(self) -> None:
        """Whoever cleared the gradients had taken hold of them before."""
        self._fresh, self._erased = self._fresh + self._erased, 0

    def differentiated(self) -> None:
        """Where gradients are values, nothing is left of those of earlier steps."""
        self._used = False
        self.backward()

    def backward(self) -> None:
        self.note(CallKind.BACKWARD)
        self._fresh += 1

    def stepped(self) -> Heard:
        """What led to the step that was taken just now; then all is forgotten but the state of the gradients."""
        self.note(self._kind_of_step())
        heard = self._calls.take(0)
        if self._erased:
            heard = heard._replace(counts={**heard.counts, CallKind.ERASED_BACKWARD: self._erased})
        self._used, self._fresh, self._erased = True, 0, 0
        self._say_phases(heard)
        return heard

    def _kind_of_step(self) -> CallKind:
        if self._fresh:
            return CallKind.STEP_ON_USED_GRADIENT if self._used else CallKind.STEP
        if self._erased:
            return CallKind.STEP_ON_ERASED_GRADIENT
        return CallKind.STEP_ON_SAME_GRADIENT if self._used else CallKind.STEP_ON_GIVEN_GRADIENT

    def close(self) -> None:
        """No step follows what was called since the last one."""
        heard, steps = self._calls.take(0), self._step()
        self._say_phases(heard, last=True)
        if heard.names:
            backwards = heard.counts.get(CallKind.BACKWARD, 0)
            idle = {0: backwards} if not steps and backwards else {}
            self._say(Pending(steps, heard.names, heard.counts, optimisers=1, idle=idle))

    def _say_phases(self, heard: Heard, *, last: bool = False) -> None:
        for phase in heard.phases(self._step(), last=last, alone=WITHOUT_GRAPH):
            self._say(phase)
