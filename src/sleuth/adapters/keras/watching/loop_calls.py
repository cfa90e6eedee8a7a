"""The order in which a loop calls things, and what that makes of the gradients."""

from collections import Counter, deque
from collections.abc import Callable

from sleuth.adapters.keras.user_lines import Spot, located, spot_now
from sleuth.core.observation import Call, Observation, Pending, Phase

FORWARDS = ("forward", "forward-in-eval")
VALIDATIONS = ("validate", "validate-in-train")


class Calls:
    """Between one step and the next. `waiting` is given what is worth telling at once."""

    def __init__(self, waiting: "deque[Observation]", step: Callable[[], int]) -> None:
        self._waiting, self._step = waiting, step
        self._order: list[str] = []
        self._counts: Counter[str] = Counter()
        self._fresh = 0  # backwards whose gradients wait for a step
        self._erased = 0
        self._used = False  # a step has used what is there, and nobody cleared it
        self._run: tuple[str, int] = ("", 0)  # the model's calls in a row: their kind, how many
        self._phases: list[tuple[str, int]] = []
        self._known: set[tuple[str, int, int]] = set()

    @property
    def heard_forward(self) -> bool:
        return any(self._counts[kind] for kind in FORWARDS)

    @property
    def backwards(self) -> int:
        return self._counts["backward"]

    @property
    def heard_backward(self) -> bool:
        """Since the last step."""
        return bool(self._fresh or self._erased)

    @property
    def erased(self) -> bool:
        return bool(self._erased)

    def note(self, kind: str, spot: Spot | None = None) -> None:
        """At this place; None: at the one where the user's code is now."""
        self._counts[kind] += 1
        if not self._order or self._order[-1] != kind:
            self._order.append(kind)
        spot = spot or spot_now()
        # The hash of a code object is slow; its address does.
        key = (kind, 0, 0) if spot is None else (kind, id(spot.code), spot.instruction)
        if key not in self._known:
            self._known.add(key)
            self._waiting.append(Call(kind, self._step(), located(spot)))

    def forward(self, *, training: bool, graph: bool, spot: Spot | None = None) -> None:
        kind = ("forward" if training else "forward-in-eval") if graph else "validate-in-train" if training else "validate"
        before, times = self._run
        if kind != before:
            self._end_run()
        self._run = (kind, times + 1 if kind == before else 1)
        self.note(kind, spot)

    def cleared(self) -> None:
        self.note("zero_grad")
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
        self._run = ("", 0)
        self.note("backward")
        self._fresh += 1

    def stepped(self) -> tuple[tuple[str, ...], dict[str, int]]:
        """What led to the step that was taken just now; then all is forgotten but the state of the gradients."""
        self.note(self._kind_of_step())
        if self._erased:
            self._counts["erased-backward"] = self._erased
        told = tuple(self._order), dict(self._counts)
        self._tell_phases(last=False)
        self._used, self._fresh, self._erased = True, 0, 0
        self._order, self._counts = [], Counter()
        return told

    def _kind_of_step(self) -> str:
        if self._fresh:
            return "step-on-used-gradient" if self._used else "step"
        if self._erased:
            return "step-on-erased-gradient"
        return "step-on-same-gradient" if self._used else "step-on-given-gradient"

    def closed(self, steps: int) -> None:
        self._end_run()
        self._tell_phases(last=True)
        if self._order:
            idle = {0: self.backwards} if not steps and self.backwards else {}
            self._waiting.append(Pending(steps, tuple(self._order), dict(self._counts), optimisers=1, idle=idle))

    def _end_run(self) -> None:
        if self._run[1]:
            self._phases.append(self._run)
        self._run = ("", 0)

    def _tell_phases(self, *, last: bool) -> None:
        forwards = sum(self._counts[kind] for kind in FORWARDS)
        for kind, calls in self._phases:
            told = Phase(self._step(), kind, calls, forwards=forwards, backwards=self.backwards, last=last)
            self._waiting.append(told)
        self._phases = []
        self._run = ("", 0)
