"""Notices a loss that is not finite soon enough that what its step was given is still at hand."""

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from sleuth.adapters.jax.watching.scanning import Round
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.core.observation import Observation

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
    compiled: Any  # None: the step is not compiled as a whole
    given: Any


class Tripwire:
    """Tells of the first loss that is not finite; `say` is given what is found out about it."""

    def __init__(self, alarms: Alarms, say: Callable[..., None], remarks: list[str]) -> None:
        self._alarms, self._say, self._remarks = alarms, say, remarks
        self._ring: deque[Remembered] | None = None
        self._since = 0
        self._room = 0
        self._waits = alarms.guard.every_gradient  # for every step's loss
        self._looks: dict[int, Remembered] = {}
        self.met = False

    def add(self, step: int, loss: Any, compiled: Any, given: Any) -> None:
        if loss is None or self.met:
            return
        if self._ring is None:
            self._room = 0 if given is None else _room(given)
            self._ring = deque(maxlen=max(self._room, LEAST_STEPS))
        self._ring.append(Remembered(step, loss, compiled, given if self._room else None))
        self._since += 1
        if self._waits or self._since * 2 >= (self._ring.maxlen or 1):
            self._since = 0
            self._look(wait=self._waits)

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
            yield from gradient_origin(found, self._remarks)

    def close(self) -> None:
        if not self.met:
            self._look(wait=True)
        self._ring = None

    def _look(self, *, wait: bool) -> None:
        """A loss that broke stays broken, mostly: the latest one that is there speaks for those before it."""
        ring = list(self._ring or ())
        latest = next((r for r in reversed(ring) if wait or _is_ready(r.loss)), None)
        if latest is None or math.isfinite(_value(latest.loss)):
            return
        self.met, self._ring = True, None
        first = _first_round(next(r for r in ring if not math.isfinite(_value(r.loss))))
        bad = not_finite_loss(first.step, _value(first.loss))
        if bad is None:
            return
        self._say(bad, *self._inquire(first, ring))
        self._alarms.not_finite(bad, noted=True)

    def _inquire(self, first: Remembered, ring: list[Remembered]) -> list[Observation]:
        from sleuth.adapters.jax.watching.rerun_nonfinite import inquire

        if first.compiled is None:
            return []
        before = next((r for r in reversed(ring) if r.step < first.step), None)
        found: list[Observation] = []
        try:
            found += inquire(first, before, self._remarks)
        except Exception as error:
            self._remarks.append(f"where the loss became NaN or Inf could not be found out: {type(error).__name__}: {error}")
        return found


def _room(given: Any) -> int:
    size = sum(getattr(leaf, "nbytes", 0) for leaf in jax.tree_util.tree_leaves(given))
    return min(MOST_STEPS, MOST_BYTES // max(size, 1))


def _is_ready(loss: Any) -> bool:
    """A plain number is."""
    return bool(getattr(loss, "is_ready", lambda: True)())


def _value(loss: Any) -> float:
    return float(np.asarray(loss))


def _first_round(found: Remembered) -> Remembered:
    """Of a loop inside the compiled step the last round was remembered: an earlier one may have been the first."""
    if not isinstance(found.loss, Round):
        return found
    losses = np.asarray(found.loss.array).reshape(-1)[: found.loss.number + 1]
    number = int(np.argmin(np.isfinite(losses)))
    return found._replace(step=found.step - (found.loss.number - number), loss=losses[number])
