"""A copy of the user's model to look at, in evaluation mode unless told otherwise; random states are put back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx import state
from sleuth.adapters.mlx.arrays import arrays_in, as_mlx
from sleuth.adapters.mlx.bounds import guarded
from sleuth.adapters.mlx.copying import copied
from sleuth.adapters.mlx.model_parts import modules
from sleuth.core.subject import call_model


@contextmanager
def guest(model: nn.Module, *, as_is: bool = False) -> Iterator[nn.Module]:
    """Where a model cannot be copied the original is looked at, and put back."""
    try:
        (visited,) = copied(model)
    except Exception:  # it may hold what cannot be copied: locks, open files
        visited = model
    before = state.snapshot([module for _, module in modules(visited)], None)
    try:
        if not as_is:
            visited.eval()
        yield visited
    finally:
        state.restore(before)


def call(model: nn.Module, inputs: Any) -> Any:
    """One forward pass, computed."""
    with guarded():
        output = call_model(model, model.__call__, as_mlx(inputs))
    mx.eval(arrays_in(output))
    return output
