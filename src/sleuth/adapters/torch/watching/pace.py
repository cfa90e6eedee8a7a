"""Which steps are looked at in full, so that the whole stays within a share of the training's time."""

import math
import time

# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_STEPS = 4
# Not part of the calibration: first calls allocate, import and compile.
WARM_UP = 2
# Of the budget; the rest is for what is done at every step, for judging and for writing.
SHARE_FOR_LOOKING = 0.5
# Used to learn how long a plain step takes.
PLAIN_STEPS = 8


class Pace:
    """`every` is exact; else a step is sampled whenever the budget allows, at an interval that only widens."""

    def __init__(self, *, every: int | None, overhead: float) -> None:
        self._every = every
        self._overhead = overhead
        self._interval = every or 0  # 0: not calibrated
        self._next = 0
        self._began = time.perf_counter()
        self._plain: list[float] = []
        self._looks: list[float] = []

    @property
    def interval(self) -> int:
        return max(self._interval, 1)

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        if step < FIRST_STEPS:
            return True
        return self._interval > 0 and step >= self._next

    def step_ended(self, step: int, looked: bool, own_seconds: float) -> None:
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        if self._every is not None:
            return
        if looked:
            self._looked(step, own_seconds)
        elif self._interval == 0 and step >= FIRST_STEPS:
            self._plain.append(seconds)
            if len(self._plain) >= PLAIN_STEPS:
                self._calibrate(step)

    def _looked(self, step: int, own_seconds: float) -> None:
        if step >= WARM_UP:
            self._looks.append(own_seconds)
        if self._interval:
            self._widen(step)

    def _calibrate(self, step: int) -> None:
        self._step_seconds = sorted(self._plain)[len(self._plain) // 2]
        self._interval = 1
        self._widen(step)

    def _widen(self, step: int) -> None:
        recent = sorted(self._looks[-5:])
        cost = recent[len(recent) // 2] if recent else 0.0
        wanted = math.ceil(cost / (self._overhead * SHARE_FOR_LOOKING * max(self._step_seconds, 1e-9)))
        self._interval = max(self._interval, wanted, 1)
        del self._looks[:-5]
        self._next = step + self._interval
