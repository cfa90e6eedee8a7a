"""Where a step broke that is not finite: it is done once more, operation by operation, and everything is put back."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_unflatten

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import arrays_in, dtype_name, values
from sleuth.adapters.mlx.model_parts import modules
from sleuth.adapters.mlx.origin import born_backward, born_forward
from sleuth.adapters.mlx.pass_listener import Made
from sleuth.adapters.mlx.trees.tree import Tree, named
from sleuth.core.observation import Origin

if TYPE_CHECKING:
    from sleuth.adapters.mlx.watching.full_look import Look


def find_origin(look: "Look", made: Sequence[Made], step: int, model: nn.Module) -> Origin | None:
    """None where it was there before: in the weights."""
    if any(not np.isfinite(values(a)).all() for a in look.before.values()):
        return None
    try:
        found = _once_more(look, step, model)
    except Exception:  # the user's function may not be made to be called twice
        found = None
    return found or _layer(made, step)


def _once_more(look: "Look", step: int, model: nn.Module) -> Origin | None:
    if look.again is None or not look.before:
        return None
    return once_more(look.again, tree_unflatten(list(look.before.items())), step, model)


def once_more(again: Callable[[], Any], weights: Any, step: int, model: nn.Module) -> Origin | None:
    """The user's function, from these weights."""
    before = state.snapshot([module for _, module in modules(model)], None)
    try:
        if isinstance(model, Tree):
            model.hold(named(weights))
        else:
            model.update(weights)
        found = born_forward(model, lambda: _loss(again()), step)
        if found is not None or not bool(mx.all(mx.isfinite(_loss(again()))).item()):
            return found  # a loss that no operation broke was handed its NaN: the way back tells of nobody
        return born_backward(model, lambda: _loss(again()), step)
    finally:
        state.restore(before)


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
