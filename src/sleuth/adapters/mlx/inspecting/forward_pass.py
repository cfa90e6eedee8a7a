"""One forward pass of a guest, visit by visit: shapes, operations, time, what it failed of, and which
operation feeds which."""

import inspect
import time
from dataclasses import replace
from typing import Any

import mlx.nn as nn
import numpy as np

from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.mlx.arrays import as_mlx
from sleuth.adapters.mlx.copying import call, guest
from sleuth.adapters.mlx.failure import explain
from sleuth.adapters.mlx.flow import FlowNotes
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.operations import Operations
from sleuth.core.contract.inspection import Node, Passage, Route, Visit
from sleuth.core.subject import call_model

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


def route(model: nn.Module, inputs: Any) -> Route:
    """Which operation feeds which in one forward pass, and in which call of a part each ran."""
    native = as_mlx(inputs)
    with guest(model) as visited:
        notes, visitor = FlowNotes(visited), Visitor(visited)
        heard = Operations(visited, whole=lambda module: family_of(module) not in ("container", "other"))
        owners: list[int] = []
        heard.on_heard = lambda: owners.append(visitor.stack[-1] if visitor.stack else 0)
        notes.expect(_named(visited, native))
        places = [0] * len(notes)
        try:
            # Listened to from the inside: while an operation is told, the visit that it ran in is still open.
            with heard.listening(), visitor.following():
                output = call_model(visited, visited.__call__, native)
        except Exception:
            require_passage(passage(model, inputs))
            raise
        for operation, owner in zip(heard.heard, owners, strict=True):
            notes.take(operation)
            places += [owner] * (len(notes) - len(places))
        flow = notes.flow(output)
        places += [0] * (len(flow.operations) - len(places))
    owned = zip(flow.operations, places, strict=True)
    nodes = (Node(o.name.strip("_"), o.family, o.shape, owner, o.sources) for o, owner in owned)
    return Route(tuple(nodes), Passage(visitor.visits(), flops_counted=False), flow.outputs)


def _named(model: nn.Module, inputs: Any) -> Any:
    """Several inputs are called as the model calls them."""
    if not isinstance(inputs, tuple) or hasattr(inputs, "_fields"):
        return inputs
    names = [p.name for p in inspect.signature(model.__call__).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return dict(zip([*names, *map(str, range(len(names), len(inputs)))], inputs, strict=False))
