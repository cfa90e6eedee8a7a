"""What a step and a look take. A step returns before it is computed, so a few of them are waited for."""

from statistics import median

from sleuth.adapters.listening.pace import Shares

SHARES = Shares(looking=0.5)
# Steps of either kind that are waited for.
AWAITED = 3


class AwaitedSteps:
    def __init__(self, *, wanted: bool) -> None:
        """`wanted`: which steps are looked at depends on the time."""
        self._wanted = wanted
        self._seconds: dict[bool, list[float]] = {True: [], False: []}

    def wants(self, *, looked: bool) -> bool:
        return self._wanted and len(self._seconds[looked]) < AWAITED

    def took(self, seconds: float, *, looked: bool) -> None:
        self._seconds[looked].append(seconds)

    @property
    def are_known(self) -> bool:
        return len(self._seconds[False]) >= AWAITED

    @property
    def step_seconds(self) -> float:
        return median(self._seconds[False])

    @property
    def look_seconds(self) -> float:
        """What a look costs beyond a plain step; 0.0: not known."""
        if not (self._seconds[True] and self._seconds[False]):
            return 0.0
        return max(0.0, median(self._seconds[True]) - self.step_seconds)
