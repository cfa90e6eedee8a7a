"""Which steps are looked at in full."""

from statistics import median

from sleuth.adapters.listening.stride import Stride

# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# Not part of the calibration: first calls build, allocate and compile.
WARM_UP = 2
# Of the budget; the rest is for what is done at every step, for judging and for writing.
SHARE = 0.5
# A short run has some looks too: the next one waits at most for this part of the steps so far, inverse.
PATIENCE = 6
PLAIN_STEPS = 8
# The order of calls is followed on the first steps, and from then on where a step is looked at, or something has gone on since.
FIRST_FOLLOWED = 64


class Pace:
    """`every` is exact; else a step is looked at whenever the budget allows."""

    def __init__(self, *, every: int | None, overhead: float) -> None:
        self._every = every
        self._looks = Stride(overhead * SHARE, PATIENCE)
        self._plain: list[float] = []

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        return step < FIRST_LOOKS or self._looks.is_due(step)

    def ended(self, step: int, seconds: float, *, looked: bool, own_seconds: float) -> None:
        if self._every is not None or step < WARM_UP:
            return
        if looked:
            self._looks.paid(own_seconds)
        else:
            self._plain = [*self._plain[-PLAIN_STEPS:], seconds]
        if len(self._plain) >= PLAIN_STEPS and (looked or self._looks.steps == 0):
            self._looks.calibrate(step, median(self._plain))


class Vigil:
    """Whose calls are followed: following them costs as much as all else that is done at every step together."""

    def __init__(self) -> None:
        self._is_woken = True

    def wake(self) -> None:
        """Something happens that is no step: the one that comes next is followed."""
        self._is_woken = True

    def follows(self, step: int, *, looks: bool) -> bool:
        woken, self._is_woken = self._is_woken, False
        return woken or looks or step < FIRST_FOLLOWED
