"""Which operation feeds which in one forward pass, and in which call of a part each ran."""

import inspect
from typing import Any

import mlx.nn as nn

from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.mlx.arrays import as_mlx
from sleuth.adapters.mlx.flow import FlowNotes
from sleuth.adapters.mlx.inspecting.forward_pass import passage
from sleuth.adapters.mlx.inspecting.layer_calls import Visitor
from sleuth.adapters.mlx.inspecting.model_copy import guest
from sleuth.adapters.mlx.kinds import family_of
from sleuth.adapters.mlx.operations import Operations
from sleuth.core.contract.inspection import Node, Passage, Route
from sleuth.core.subject import call_model


def route(model: nn.Module, inputs: Any) -> Route:
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
