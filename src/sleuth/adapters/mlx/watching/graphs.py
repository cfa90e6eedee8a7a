"""Whether something that is never computed drags the operations of every step along. MLX is lazy: `total += loss` adds a node."""

import sys
from dataclasses import dataclass, field

from sleuth.adapters.mlx.watching.holders import holder_of, operations_behind
from sleuth.core.observation import Retention

# Searched for at so many steps, half as many later, and at each doubling: to draw what is dragged along takes longer the longer
# it is.
FIRST = 16
# In a row: what waits at one search and not at another, as the loss of a second model does, has not grown.
LEAST_GROWTHS = 2
# Who was found at so many searches is known well enough.
ENOUGH = 3
# An operation at every second step, at the least.
LEAST_GROWTH = 0.5


@dataclass
class Graphs:
    _next: int = FIRST
    _before: dict[str, int] = field(default_factory=dict)
    _step: int = 0
    _found: int = 0
    _growths: dict[str, int] = field(default_factory=dict)

    def after_step(self, step: int) -> Retention | None:
        if step < self._next or self._found >= ENOUGH:
            return None
        behind = operations_behind(sys._getframe(1))
        growing, first = {}, self._step == 0
        for name, (count, variable) in behind.items():
            growth = (count - self._before.get(name, 0)) / (step - self._step)
            self._growths[name] = self._growths.get(name, 0) + 1 if growth >= LEAST_GROWTH and name in self._before else 0
            if self._growths[name] >= LEAST_GROWTHS:
                growing[name] = (min(step, round(count / growth)), variable)
        self._growths = {name: count for name, count in self._growths.items() if name in behind}
        self._next, self._step = step + FIRST // 2 if first or step < 2 * FIRST else 2 * step, step
        self._before = {name: count for name, (count, _) in behind.items()}
        if first or not growing:  # what waits once is no growth: a loss that is computed at the end of the step
            return Retention(step, 0)
        self._found += 1
        alive, variable = max(growing.values(), key=lambda found: found[0])
        holder = holder_of(variable)
        return Retention(step, alive, holder=holder, location=holder.location)
