"""Copies: of what belongs together, and of a model to look at."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx
from sleuth.adapters.mlx.bounds import guarded
from sleuth.adapters.mlx.created_at import hand_on
from sleuth.adapters.mlx.model_parts import modules
from sleuth.core.subject import call_model

# Its name is not the same in every version.
COMPILED = type(mx.compile(lambda: None))


def copied(*things: Any) -> Any:
    """Functions of MLX's own (mx.max in a pooling) and what mx.compile returns (nn.relu) cannot be copied and need not be."""
    own = {
        id(f): f for owner in (mx, mx.fast, mx.linalg, mx.random) for f in vars(owner).values() if type(f).__name__ == "nb_func"
    }
    held = [v for t in things if isinstance(t, nn.Module) for _, m in modules(t) for v in (*vars(m).values(), *m.values())]
    compiled = {id(v): v for v in (*held, *things) if isinstance(v, COMPILED)}
    mx.eval([a for t in things if isinstance(t, nn.Module) for a in arrays_in(dict(t))])
    made = copy.deepcopy(things, {**own, **compiled})
    for one, other in zip(things, made, strict=True):
        if isinstance(one, nn.Module):
            hand_on(one, other)
    return made


@contextmanager
def guest(model: nn.Module, *, as_is: bool = False) -> Iterator[nn.Module]:
    """A copy of the user's model, in evaluation mode unless told otherwise; random states are put back. Where it cannot be copied
    the original is looked at, and put back."""
    try:
        (visited,) = copied(model)
    except Exception:  # it may hold what cannot be copied: locks, open files
        visited = model
    with state.as_before([module for _, module in modules(visited)]):
        if not as_is:
            visited.eval()
        yield visited


def call(model: nn.Module, inputs: Any) -> Any:
    """One forward pass, computed."""
    with guarded():
        output = call_model(model, model.__call__, as_mlx(inputs))
    mx.eval(arrays_in(output))
    return output
