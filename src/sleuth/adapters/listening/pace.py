"""Which steps are looked at in full, and which are listened to in full, so that the whole stays within a share of the time."""

import time
from dataclasses import dataclass
from statistics import median

from sleuth.adapters.listening.stride import Stride

# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# And listened to: how a loop is written shows in its first steps.
FIRST_HEARD = 64
# Not part of the calibration: first calls allocate, import and compile.
WARM_UP = 2
# Of the steps so far, inverse: some three dozen looks in a thousand steps, whatever they cost.
PATIENCE = 6
# The same for steps that are listened to: what recorders take samples of is as rare.
HEARD_PATIENCE = 16
# Used to learn how long a step takes, and what it costs to listen to one.
PLAIN_STEPS = 8
# Where the user says which steps are looked at, nothing depends on the time.
ASKED_STRIDE = 8


@dataclass(frozen=True)
class Shares:
    """Of the budget; the rest is for what is done at every step, for judging and for writing."""

    looking: float = 0.3
    listening: float = 0.2
    # What a stopwatch inside our own functions does not see, of what it sees: the way into them, and that the user's code finds
    # the processor's caches full of ours.
    unseen: float = 0.0
    # What it costs to listen to a step lightly, of what it costs in full; and seconds for the latter where none was timed alone.
    light: float = 0.15
    full_seconds: float = 8e-4


class Pace:
    """`every` is exact; else a step is looked at, and listened to, whenever the budget allows."""

    def __init__(self, *, every: int | None, overhead: float, shares: Shares) -> None:
        self._every, self._shares = every, shares
        self._looks = Stride(overhead * shares.looking / (1 + shares.unseen), PATIENCE)
        self._heard = Stride(overhead * shares.listening / (1 + shares.unseen), HEARD_PATIENCE)
        self._plain: list[float] = []
        self._stretch_ends = FIRST_HEARD

    @property
    def interval(self) -> int:
        return max(self._every or self._looks.steps, 1)

    @property
    def light_seconds(self) -> float:
        """What listening lightly to one step costs."""
        return self._shares.light * (self._shares.full_seconds if self._heard.cost is None else self._heard.cost)

    def all_in_all(self, measured_seconds: float, light_steps: int = 0) -> float:
        """Seconds, of what stopwatches measured and of so many steps that were listened to lightly."""
        return (measured_seconds + light_steps * self.light_seconds) * (1 + self._shares.unseen)

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        return step < FIRST_LOOKS or self._looks.is_due(step)

    def listens_to(self, step: int, stretch: int = 1) -> bool:
        """`stretch`: steps that have to be heard one after the other."""
        if step < self._stretch_ends:
            return True
        due = step % ASKED_STRIDE == 0 if self._every is not None else self._heard.is_due(step)
        if due:
            self._stretch_ends = step + stretch
        return due

    def quiet_until(self, step: int) -> int:
        """The first step after this one that is looked at or listened to; never too late."""
        if self._every is not None:
            return min(step - step % n + n for n in (self._every, ASKED_STRIDE))
        return max(step + 1, min(self._looks.next, self._heard.next))

    def step_ended(self, step: int, seconds: float, *, looked: bool, own_seconds: float, heard: bool = True) -> None:
        """`seconds`: of the whole step; `own_seconds`: of ours in it. `heard`: it was listened to in full."""
        if not (looked or heard) or self._every is not None or step < WARM_UP:
            return
        if looked:
            self._looks.paid(own_seconds)
        elif step >= FIRST_LOOKS:
            self._heard.paid(own_seconds)
            self._plain = [*self._plain[1 - PLAIN_STEPS :], seconds]
        if len(self._plain) < PLAIN_STEPS:
            return
        usual = median(self._plain)
        if looked or self._looks.steps == 0:
            self._looks.calibrate(step, usual)
        if heard and step >= FIRST_HEARD - 1:
            self._heard.calibrate(step, usual)

    def step_awaited(self, step: int, *, looked: bool, look_seconds: float, step_seconds: float) -> None:
        """In place of `step_ended`, where a step returns before it is computed: what a look costs beyond a plain step, and what
        that takes, as a few steps told that were waited for."""
        if self._every is None and (looked or self._looks.steps == 0):
            self._looks.paid(look_seconds)
            self._looks.calibrate(step, step_seconds)


class Stopwatch:
    """Tells the time of the user's steps from our own."""

    def __init__(self) -> None:
        self._ended, self._own = time.perf_counter(), 0.0

    def step_ended(self, own_seconds: float) -> tuple[float, float]:
        """Seconds since the step before, and how many of them were ours. `own_seconds`: all of ours so far."""
        now = time.perf_counter()
        seconds, own = now - self._ended, own_seconds - self._own
        self._ended, self._own = now, own_seconds
        return seconds, own
