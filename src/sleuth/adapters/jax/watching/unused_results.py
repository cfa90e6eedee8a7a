"""Results that nobody uses: updates that are not kept, because the next gradient is taken at the very arrays that they were to
replace; and gradients that are taken again and again while the weights stay what they are."""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from sleuth.core.observation import Frame, Observation, Pending, Role
from sleuth.core.observation.calls import CallKind
from sleuth.core.statistics import COLUMNS

COUNT, ZEROS = COLUMNS.index("count"), COLUMNS.index("zeros")


class Discarded:
    """Of what is trained together, until something of it was kept once. The arrays themselves are not held."""

    def __init__(self) -> None:
        self.times = 0
        self.kept = False
        self._before: list[weakref.ref[Any]] | None = None

    @property
    def always(self) -> bool:
        return self.times > 0 and not self.kept

    def updated(self, before: list[Any]) -> None:
        """Outside of a compiled step."""
        if self.kept:
            return
        # An array of JAX is never written to; anything else may have been changed in place.
        self.kept = not all(isinstance(leaf, jax.Array) for leaf in before)
        self._before = None if self.kept else [weakref.ref(leaf) for leaf in before]

    def taken(self, weights: Callable[[], list[Any] | None]) -> None:
        """A gradient, at these weights."""
        if self._before is None:
            return
        old = {id(leaf) for ref in self._before if (leaf := ref()) is not None}
        now, self._before = weights(), None
        self.kept = now is None or any(id(leaf) not in old for leaf in now)
        self.times += not self.kept


class Unused:
    def __init__(self) -> None:
        self._looks = 0
        self._moved = False

    def hear(self, observation: Observation) -> None:
        if isinstance(observation, Frame) and observation.role is Role.UPDATE:
            self._looks += 1
            # What has become NaN has moved as well.
            self._moved |= bool(np.any(observation.table[:, COUNT] != observation.table[:, ZEROS]))

    def at_the_end(self, steps: int, *, updated: bool, discarded: int = 0) -> Iterator[Observation]:
        """`updated`: updates were heard, whatever became of them; `discarded`: so many, and none of them was kept."""
        if discarded:
            counts: dict[str, int] = {CallKind.BACKWARD: steps, CallKind.DISCARDED_STEP: discarded}
            calls = (CallKind.FORWARD, CallKind.BACKWARD, CallKind.DISCARDED_STEP)
            yield Pending(0, calls, counts, optimisers=1, idle={0: discarded})
        elif self._looks and not self._moved and not updated:
            yield Pending(0, (CallKind.FORWARD, CallKind.BACKWARD), {CallKind.BACKWARD: steps}, optimisers=1, idle={0: steps})
        elif self._moved:
            yield Pending(steps, (), optimisers=1)
