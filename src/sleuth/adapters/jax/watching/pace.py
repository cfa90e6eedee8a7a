"""Which steps are taken with the executable that tells. A step returns before it is computed: a few are waited for, to learn."""

from statistics import median

from sleuth.adapters.listening.stride import Stride

# Always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# Of the budget; the rest is for what is done at every step, for judging and for writing.
SHARE_FOR_LOOKING = 0.5
# As for torch: some three dozen looks in a thousand steps, whatever they cost.
PATIENCE = 6
TIMED = 3


class Pace:
    """`every` is exact; else a step is looked at whenever the budget allows."""

    def __init__(self, *, every: int | None, overhead: float) -> None:
        self._every = every
        self._stride = Stride(overhead * SHARE_FOR_LOOKING, PATIENCE)
        self._seconds: dict[bool, list[float]] = {True: [], False: []}

    def looks_at(self, step: int) -> bool:
        if self._every is not None:
            return step % self._every == 0
        return step < FIRST_LOOKS or self._stride.is_due(step)

    def wants_time(self, *, looked: bool) -> bool:
        """Of a look, or of a plain step: neither is known until a few were waited for."""
        return self._every is None and len(self._seconds[looked]) < TIMED

    def took(self, seconds: float, *, looked: bool) -> None:
        self._seconds[looked].append(seconds)

    @property
    def extra_seconds(self) -> float:
        """What a look costs beyond a plain step; 0.0: not known."""
        if not (self._seconds[True] and self._seconds[False]):
            return 0.0
        return max(0.0, median(self._seconds[True]) - median(self._seconds[False]))

    def step_ended(self, step: int, *, looked: bool) -> None:
        if self._every is not None or len(self._seconds[False]) < TIMED:
            return
        if looked or self._stride.steps == 0:
            self._stride.paid(self.extra_seconds)
            self._stride.calibrate(step, median(self._seconds[False]))
