"""Whether something that is never computed drags the operations of every step along. MLX is lazy: `total += loss` adds a node."""

import sys
from dataclasses import dataclass, field

from sleuth.adapters.mlx.watching.holders import holder_of, operations_behind
from sleuth.core.observation import Retention

# Searched for at so many steps, and at each doubling: to draw what is dragged along takes longer the longer it is.
FIRST = 16
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

    def after_step(self, step: int) -> Retention | None:
        if step < self._next or self._found >= ENOUGH:
            return None
        behind = operations_behind(sys._getframe(1))
        growing = {}
        for name, (count, variable) in behind.items():
            growth = (count - self._before.get(name, 0)) / (step - self._step)
            if growth >= LEAST_GROWTH and (name in self._before or self._step == 0):
                growing[name] = (min(step, round(count / growth)), variable)
        first = self._step == 0
        self._next, self._step, self._before = 2 * step, step, {name: count for name, (count, _) in behind.items()}
        if first or not growing:  # what waits once is no growth: a loss that is computed at the end of the step
            return Retention(step, 0)
        self._found += 1
        alive, variable = max(growing.values(), key=lambda found: found[0])
        holder = holder_of(variable)
        return Retention(step, alive, holder=holder, location=holder.location)
