"""Whether something that is never computed drags the operations of every step along. MLX is lazy: `total += loss` adds a node."""

import sys
from dataclasses import dataclass, field

from sleuth.adapters.mlx.watching.memory_holders import holder_of, operations_behind
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


@dataclass
class Graphs:
    _next: int = FIRST - APART
    _before: dict[str, int] | None = None  # at the first search of two
    _latest: dict[str, int] = field(default_factory=dict)  # at the second, the last time
    _step: int = 0
    _found: int = 0
    _growths: dict[str, int] = field(default_factory=dict)

    def after_step(self, step: int) -> Retention | None:
        if step < self._next or self._found >= ENOUGH:
            return None
        behind = operations_behind(sys._getframe(1))
        if self._before is None:
            self._before, self._next = {name: count for name, (count, _) in behind.items()}, step + APART
            return None
        growing = {}
        for name, (count, variable) in behind.items():
            at_once = (count - self._before.get(name, count)) / APART
            growth = (count - self._latest.get(name, 0)) / (step - self._step)
            self._growths[name] = self._growths.get(name, 0) + 1 if min(at_once, growth) >= LEAST_GROWTH else 0
            if self._growths[name] >= LEAST_GROWTHS and name in self._latest:
                growing[name] = (min(step, round(count / growth)), variable)
        self._growths = {name: count for name, count in self._growths.items() if name in behind}
        self._latest, self._before, self._step = {name: count for name, (count, _) in behind.items()}, None, step
        self._next = (step + FIRST // 2 if step < 2 * FIRST else 2 * step) - APART
        if not growing:  # what waits once is no growth: a loss that is computed at the end of the step
            return Retention(step, 0)
        self._found += 1
        alive, variable = max(growing.values(), key=lambda found: found[0])
        holder = holder_of(variable)
        return Retention(step, alive, holder=holder, location=holder.location)
