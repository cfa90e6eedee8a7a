"""Notices a loss that is not finite soon enough that what its step was given is still at hand."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from sleuth.core.contract.guard import Alarm, Guard
from sleuth.core.observation import NotFinite, Observation

# What the last steps were given is held, in so much memory at most.
MOST_BYTES = 64 << 20
MOST_STEPS = 16
# What steps were given that were looked at, until the look is read.
MOST_LOOKS = 8
# Losses are held in any case.
LEAST_STEPS = 2


class Remembered(NamedTuple):
    step: int
    loss: Any
    compiled: Any
    given: Any


class Tripwire:
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._ring: deque[Remembered] | None = None
        self._since = 0
        self._room = 0
        self._done = False
        self._looks: dict[int, Remembered] = {}
        self._acts: list[Callable[[], None]] = []
        self.found: list[Observation] = []
        self.remarks: list[str] = []

    def add(self, step: int, loss: Any, compiled: Any, given: Any) -> None:
        if loss is None or given is None or self._done:
            return
        if self._ring is None:
            self._room = _room(given)
            self._ring = deque(maxlen=max(self._room, LEAST_STEPS))
        self._ring.append(Remembered(step, loss, compiled, given if self._room else None))
        self._since += 1
        if self._guard.every_gradient or self._since * 2 >= (self._ring.maxlen or 1):
            self._since = 0
            self._look(wait=self._guard.every_gradient)

    def looked(self, step: int, loss: Any, compiled: Any, given: Any) -> None:
        """Gradients are read later, by another thread: until then it is known what such a step was given."""
        if given is not None and len(self._looks) < min(MOST_LOOKS, _room(given)):
            self._looks[step] = Remembered(step, loss, compiled, given)

    def read(self, step: int) -> None:
        """What was measured at this step is known now."""
        self._looks.pop(step, None)

    def gradient_origin(self, step: int) -> Iterator[Observation]:
        """Where the NaN of a gradient was born whose loss is finite."""
        from sleuth.adapters.jax.watching.rerun_nonfinite import gradient_origin

        found = self._looks.get(step)
        if found is not None:
            yield from gradient_origin(found, self.remarks)

    def acts(self, step: int) -> list[Callable[[], None]]:
        acts, self._acts = self._acts, []
        return acts

    def close(self, step: int) -> None:
        if not self._done:
            self._look(wait=True)
        self._done, self._ring = True, None

    def _look(self, *, wait: bool) -> None:
        """A loss that broke stays broken, mostly: the latest one that is there speaks for those before it."""
        ring = self._ring or ()
        latest = next((r for r in reversed(ring) if wait or r.loss.is_ready()), None)
        if latest is None or math.isfinite(_value(latest.loss)):
            return
        first = next(r for r in ring if not math.isfinite(_value(r.loss)))
        self._done = True
        self.found += self._inquire(first, list(ring))
        self._ring = None
        self._alarm(first)

    def _inquire(self, first: Remembered, ring: list[Remembered]) -> Iterator[Observation]:
        from sleuth.adapters.jax.watching.rerun_nonfinite import inquire

        value = _value(first.loss)
        yield NotFinite(first.step, "loss", nans=int(math.isnan(value)), infs=int(math.isinf(value)))
        before = next((r for r in reversed(ring) if r.step < first.step), None)
        try:
            yield from inquire(first, before, self.remarks)
        except Exception as error:
            self.remarks.append(f"where the loss became NaN or Inf could not be found out: {type(error).__name__}: {error}")

    def _alarm(self, first: Remembered) -> None:
        message = f"the loss is not finite at step {first.step}"
        act = self._guard.tell(Alarm("loss-not-finite", first.step, message))
        if act is not None:
            self._acts.append(act.do)


def _room(given: Any) -> int:
    size = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree_util.tree_leaves(given))
    return min(MOST_STEPS, MOST_BYTES // max(size, 1))


def _value(loss: Any) -> float:
    return float(np.asarray(loss))
