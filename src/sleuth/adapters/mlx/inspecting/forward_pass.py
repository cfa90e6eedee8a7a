"""One forward pass of a guest, visit by visit: shapes, operations, time, and what it failed of."""

import time
from dataclasses import replace
from typing import Any

import mlx.nn as nn
import numpy as np

from sleuth.adapters.mlx.failure import explain
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.inspecting.model_copy import call, guest
from sleuth.core.contract.inspection import Passage, Visit

# The least of so many passes is one that nothing disturbed.
TIMED_PASSES = 7
TIMED_SECONDS = 10.0


def passage(model: nn.Module, inputs: Any, *, timed: bool = False, as_is: bool = False) -> Passage:
    with guest(model, as_is=as_is) as visited:
        visitor = Visitor(visited)
        try:
            with visitor.following():
                call(visited, inputs)
        except Exception as error:
            return Passage(visitor.visits(), explain(error, "forward", visited), flops_counted=False)
    visits = visitor.visits()
    return Passage(_timed(visits, model, inputs, as_is) if timed else visits)


def _timed(visits: tuple[Visit, ...], model: nn.Module, inputs: Any, as_is: bool) -> tuple[Visit, ...]:
    """Each part is computed by itself: what MLX would fuse or put off is not."""
    passes: list[list[float]] = []
    with guest(model, as_is=as_is) as visited:
        call(visited, inputs)
        began = time.perf_counter()
        while len(passes) < TIMED_PASSES and (not passes or time.perf_counter() - began < TIMED_SECONDS):
            visitor = Visitor(visited, timed=True)
            with visitor.following():
                call(visited, inputs)
            passes.append([note.seconds for note in visitor.noted])
    alike = [p for p in passes if len(p) == len(visits)]
    if not alike:  # the model does not call the same parts every time
        return visits
    return tuple(replace(v, seconds=float(s)) for v, s in zip(visits, np.min(alike, axis=0), strict=True))
