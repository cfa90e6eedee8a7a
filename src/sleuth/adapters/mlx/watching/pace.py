"""Which steps are looked at in full, so that the whole stays within a share of the time."""

import time
from statistics import median

from sleuth.adapters.listening.stride import Stride

# Always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# Not part of the calibration: first calls import and compile.
WARM_UP = 2
# Of the budget; the rest is for what is done at every step, for judging and for writing.
SHARE_FOR_LOOKING = 0.4
# As for torch: some three dozen looks in a thousand steps, whatever they cost.
PATIENCE = 6
PLAIN_STEPS = 8


class Pace:
    """`every` is exact; else a step is looked at whenever the budget allows."""

    def __init__(self, *, every: int | None, overhead: float) -> None:
        self._every = every
        self._stride = Stride(overhead * SHARE_FOR_LOOKING, PATIENCE)
        self._plain: list[float] = []

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        return step < FIRST_LOOKS or self._stride.is_due(step)

    def step_ended(self, step: int, seconds: float, *, looked: bool, own_seconds: float) -> None:
        if self._every is not None or step < WARM_UP:
            return
        if looked:
            self._stride.paid(own_seconds)
        else:
            self._plain = [*self._plain[1 - PLAIN_STEPS :], seconds]
        if len(self._plain) >= PLAIN_STEPS and (looked or self._stride.steps == 0):
            self._stride.calibrate(step, median(self._plain))


class Clock:
    """Tells the time of the user's steps from our own."""

    def __init__(self) -> None:
        self._ended, self._own = time.perf_counter(), 0.0

    def since(self, now: float) -> float:
        """The last step."""
        return now - self._ended

    def step_ended(self, began: float, own_seconds: float) -> tuple[float, float]:
        """Seconds of the step without ours, and ours. `began`: when its end was noticed; `own_seconds`: all of ours so far."""
        ended = time.perf_counter()
        own = own_seconds - self._own + ended - began
        seconds = ended - self._ended - own
        self._ended, self._own = ended, own_seconds + ended - began
        return seconds, own
