"""Whether something that is never computed drags the operations of every step along. MLX is lazy: `total += loss` adds a node."""

import sys

from sleuth.adapters.common.user_variables import Variable
from sleuth.adapters.mlx.watching.memory_holders import holder_of, operations_behind
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.observation import Retention

# Searched for at so many steps, half as many later, and at each doubling: to draw what is dragged along takes longer the longer
# it is.
FIRST = 16
# Each time so many steps before, too: what grows from one step to the next drags the earlier ones along. Between searches far
# apart sequences may have become longer.
APART = 2
# In a row: what waits at one search and not at another, as the loss of a second model does, has not grown.
LEAST_GROWTHS = 2
# Who was found at so many searches is known well enough.
ENOUGH = 3
# An operation at every second step, at the least.
LEAST_GROWTH = 0.5


class GrowingGraphs(NotingRecorder):
    def __init__(self) -> None:
        super().__init__()
        self._taken = 0  # steps
        self._next = FIRST - APART
        self._before: dict[str, int] | None = None  # at the first search of two
        self._latest: dict[str, int] = {}  # at the second, the last time
        self._searched = 0  # when that was
        self._found = 0
        self._growths: dict[str, int] = {}

    def after_step(self, number: int) -> None:
        self._taken += 1
        if self._taken < self._next or self._found >= ENOUGH:
            return
        behind = operations_behind(sys._getframe(1))
        if self._before is None:
            self._before, self._next = {name: count for name, (count, _) in behind.items()}, self._taken + APART
            return
        self.notes.append(self._compared(behind, self._before))

    def _compared(self, behind: dict[str, tuple[int, Variable]], before: dict[str, int]) -> Retention:
        taken, growing = self._taken, {}
        for name, (count, variable) in behind.items():
            at_once = (count - before.get(name, count)) / APART
            growth = (count - self._latest.get(name, 0)) / (taken - self._searched)
            self._growths[name] = self._growths.get(name, 0) + 1 if min(at_once, growth) >= LEAST_GROWTH else 0
            if self._growths[name] >= LEAST_GROWTHS and name in self._latest:
                growing[name] = (min(taken, round(count / growth)), variable)
        self._growths = {name: count for name, count in self._growths.items() if name in behind}
        self._latest, self._before, self._searched = {name: count for name, (count, _) in behind.items()}, None, taken
        self._next = (taken + FIRST // 2 if taken < 2 * FIRST else 2 * taken) - APART
        if not growing:  # what waits once is no growth: a loss that is computed at the end of the step
            return Retention(taken - 1, 0)
        self._found += 1
        alive, variable = max(growing.values(), key=lambda found: found[0])
        holder = holder_of(variable)
        return Retention(taken - 1, alive, holder=holder, location=holder.location)
