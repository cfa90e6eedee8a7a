"""Where a step broke that is not finite: it is done once more, operation by operation, and everything is put back.

MLX is lazy, and arrays are values: to hold what the last steps were given costs memory and no time, and one of them can be done
again once it shows that its loss was not finite.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_unflatten

from sleuth.adapters.listening.patches import attempt
from sleuth.adapters.listening.steps import not_finite_loss
from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import arrays_in, dtype_name, evaluated, values
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.origin import born_backward, born_forward
from sleuth.adapters.mlx.pass_listener import Made
from sleuth.adapters.mlx.trees.tree import Tree, named
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.pending_steps import LAG
from sleuth.core.observation import Observation, Origin

# Of the weights and batches of one step; what is larger is not held.
MOST_BYTES = 16 << 20
# Ours, or the user's function may not be made to be called twice.
ORIGIN_LOST = "where the loss became NaN or Inf could not be found out"
Failed = Callable[[Exception], None]


@dataclass(frozen=True)
class Called:
    step: int
    weights: Any
    again: Callable[[], Any] | None  # the user's function


class RecentSteps:
    """The last steps as they were called."""

    def __init__(self, failed: Failed) -> None:
        self._failed = failed
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
        found = (not_finite_loss(step, value), self._origin(step, model))
        yield from (observation for observation in found if observation is not None)

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
        return None if last.again is None else attempt(self._failed, once_more, last.again, last.weights, step, model)


def _is_finite(tree: Any) -> bool:
    arrays = [a for a in arrays_in(tree) if mx.issubdtype(a.dtype, mx.floating)]
    return all(evaluated(arrays)) and all(bool(np.isfinite(values(a)).all()) for a in arrays)


def find_origin(look: Look, step: int, model: nn.Module, failed: Failed) -> Origin | None:
    """None where it was there before: in the weights."""
    if any(not np.isfinite(values(a)).all() for a in look.before.values()):
        return None
    return attempt(failed, _once_more, look, step, model) or _layer(look.made, step)


def _once_more(look: Look, step: int, model: nn.Module) -> Origin | None:
    if look.again is None or not look.before:
        return None
    return once_more(look.again, tree_unflatten(list(look.before.items())), step, model)


def once_more(again: Callable[[], Any], weights: Any, step: int, model: nn.Module) -> Origin | None:
    """The user's function, from these weights."""
    with state.as_before([module for _, module in modules(model)]):
        if isinstance(model, Tree):
            model.hold(named(weights))
        else:
            model.update(weights)
        found = born_forward(model, lambda: _loss(again()), step)
        if found is not None or not bool(mx.all(mx.isfinite(_loss(again()))).item()):
            return found  # a loss that no operation broke was handed its NaN: the way back tells of nobody
        return born_backward(model, lambda: _loss(again()), step)


def _loss(value: Any) -> mx.array:
    return arrays_in(value)[0]


def _layer(made: Sequence[Made], step: int) -> Origin | None:
    """The first layer, or activation, that made something not finite of what is."""
    for one in made:
        array = values(one.array)
        given = [values(a) for a in one.given if mx.issubdtype(a.dtype, mx.floating)]
        if not np.isfinite(array).all() and all(np.isfinite(g).all() for g in given):
            ranges = tuple((float(g.min()), float(g.max())) for g in given if g.size)
            counts = int(np.isnan(array).sum()), int(np.isinf(array).sum())
            kind = one.activation or one.kind or one.family
            return Origin(step, kind, "forward", one.path, ranges, one.location, *counts, dtype=dtype_name(one.array))
    return None
