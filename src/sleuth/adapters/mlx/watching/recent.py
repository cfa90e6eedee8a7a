"""The last steps as they were called: enough to do one of them again, once it shows that it was not finite.

MLX is lazy, and arrays are values: to hold what a step was given costs memory and no time.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.arrays import arrays_in, evaluated, values
from sleuth.adapters.mlx.watching import taps
from sleuth.adapters.mlx.watching.inquiry import once_more
from sleuth.adapters.mlx.watching.losses import LAG
from sleuth.core.observation import Origin

# Of the weights and batches of one step; what is larger is not held.
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Called:
    step: int
    taken: taps.Differentiated
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def weights(self) -> Any:
        return self.args[0]

    @property
    def again(self) -> Callable[[], Any] | None:
        fun = self.taken.fun
        return None if fun is None else partial(fun, *self.taken.of_the_users(self.args), **self.kwargs)


class Recent:
    def __init__(self) -> None:
        self._called: deque[Called] = deque(maxlen=LAG + 2)
        self._holds: bool | None = None  # None: how large they are was not asked yet
        self._asked = False

    def add(self, step: int, taken: taps.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._holds is None:
            self._holds = sum(a.nbytes for a in arrays_in((args, kwargs))) <= MOST_BYTES
        if self._holds and not self._asked:
            self._called.append(Called(step, taken, args, kwargs))

    def clear(self) -> None:
        self._called.clear()

    def origin(self, step: int, model: nn.Module) -> Origin | None:
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
