"""The last steps as they were called: enough to do one of them again, once it shows that it was not finite.

MLX is lazy, and arrays are values: to hold what a step was given costs memory and no time.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.arrays import arrays_in, evaluated, values
from sleuth.adapters.mlx.watching.losses import LAG
from sleuth.adapters.mlx.watching.rerun_nonfinite import once_more
from sleuth.core.observation import NotFinite, Observation, Origin

# Of the weights and batches of one step; what is larger is not held.
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Called:
    step: int
    weights: Any
    again: Callable[[], Any] | None  # the user's function


class Recent:
    def __init__(self) -> None:
        self._called: deque[Called] = deque(maxlen=LAG + 2)
        self._holds: bool | None = None  # None: how large they are was not asked yet
        self._asked = self._is_broken = False

    def add(self, step: int, weights: Any, again: Callable[[], Any] | None, given: Any) -> None:
        """`given`: all arrays that are held by that."""
        if self._holds is None:
            self._holds = sum(a.nbytes for a in arrays_in(given)) <= MOST_BYTES
        if self._holds and not self._asked:
            self._called.append(Called(step, weights, again))

    def clear(self) -> None:
        self._called.clear()

    def broken(self, step: int, value: float, model: nn.Module | None) -> Iterator[Observation]:
        """The loss of this step is not finite, which was not known when it was taken. Said of the first such step."""
        if model is None or self._is_broken:
            return
        self._is_broken = True
        yield NotFinite(step, "loss", nans=int(math.isnan(value)), infs=int(math.isinf(value)))
        origin = self._origin(step, model)
        if origin is not None:
            yield origin

    def _origin(self, step: int, model: nn.Module) -> Origin | None:
        """Of a loss that was not finite at this step: born there, or in the gradient of the step before. Asked once."""
        if self._asked:
            return None
        self._asked = True
        called = [c for c in self._called if c.step <= step]
        self._called.clear()
        # The weights of the first of them that is broken were written by the one before.
        whole = [c for c in called if _is_finite(c.weights)]
        if not whole or whole[-1].step < step - 1:
            return None
        last = whole[-1]
        try:
            return None if last.again is None else once_more(last.again, last.weights, step, model)
        except Exception:  # the user's function may not be made to be called twice
            return None


def _is_finite(tree: Any) -> bool:
    arrays = [a for a in arrays_in(tree) if mx.issubdtype(a.dtype, mx.floating)]
    return all(evaluated(arrays)) and all(bool(np.isfinite(values(a)).all()) for a in arrays)
