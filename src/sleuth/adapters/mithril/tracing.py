"""Where a NaN is born, which parameters the loss reaches, and which layer feeds which: all of it stands in the flat graph."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.mithril import arrays, kinds
from sleuth.adapters.mithril.graph import Graph, Group
from sleuth.adapters.mithril.graph_walk import Walk
from sleuth.core.observation import Origin
from sleuth.core.reading.flow import Axes, reshaped
from sleuth.core.trial import Connection, Cut, Flow, Operation


def find_origin(graph: Graph, done: Walk, step: int) -> Origin | None:
    """The first function that makes NaN or Inf of finite values."""
    for node in done.made:
        made = done.values[node.key]
        given = [done.values[key] for key in node.sources.values() if arrays.is_array(done.values.get(key))]
        if not arrays.is_array(made) or _is_finite(made) or not all(map(_is_finite, given)):
            continue
        values = arrays.values(made)
        ranges = tuple((float(v.min()), float(v.max())) for v in map(arrays.values, given) if v.size)
        nans, infs = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        return Origin(step, node.formula, "forward", node.layer, ranges, None, nans, infs, dtype=arrays.dtype(made))
    return None


def _is_finite(array: Any) -> bool:
    values = arrays.values(array)
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def connection(graph: Graph, goal: list[str], parameters: tuple[str, ...]) -> Connection:
    """A parameter is reached when a path without a cut leads from it to the goal."""
    by_key = {node.key: node for node in graph.nodes}
    open_, waiting = set(), list(goal)
    while waiting:
        key = waiting.pop()
        node = by_key.get(key)
        if key not in open_:
            open_.add(key)
            waiting += () if node is None or node.formula in kinds.CUTS else node.sources.values()
    missing = tuple(key for key in parameters if key not in open_)
    cuts = [node for node in graph.nodes if node.key in open_ and node.formula in kinds.CUTS]
    behind = {node.key: graph.behind([node.key]) for node in cuts}
    told = tuple(Cut(n.formula, n.layer, None, parameters=tuple(k for k in missing if k in behind[n.key])) for n in cuts)
    return Connection(len(parameters), missing, told, custom=_by_hand(graph))


def _by_hand(graph: Graph) -> tuple[str, ...] | None:
    """Functions that the user registered with a gradient of their own. Where the whole backend differentiates by hand, any may
    be wrong: None."""
    backend = graph.physical.backend
    own = getattr(backend, "registered_primitives", {})
    used = tuple(dict.fromkeys(node.formula for node in graph.nodes if node.formula in own))
    return used or (None if backend.is_manualgrad else ())


def flow(graph: Graph, outputs: tuple[str, ...], inputs: tuple[str, ...], done: Walk, settings: Mapping[str, Any]) -> Flow:
    """Layer by layer. What is made of parameters alone is no operation of it."""
    operations: list[Operation] = []
    at: dict[str, int] = {}
    fed = {key for key in done.values if graph.behind([key]) & set(inputs)}
    for key in inputs:
        at[key] = len(operations)
        operations.append(Operation(key, "input", (), tuple(done.values[key].shape)))
    wanted = graph.behind(outputs)
    for group in graph.groups:
        if group.output not in wanted or group.output not in fed or group.output not in done.values:
            continue
        sources = tuple(dict.fromkeys(at[key] for key in group.given() if key in at))
        operations.append(_operation(graph, group, sources, done, dict(settings.get(group.path, {})), group.output in outputs))
        at.update({node.key: len(operations) - 1 for node in group.nodes})
    return Flow(tuple(operations), tuple(dict.fromkeys(at[key] for key in outputs if key in at)))


def _operation(
    graph: Graph, group: Group, sources: tuple[int, ...], done: Walk, settings: dict[str, Any], leaves: bool
) -> Operation:
    made = done.values[group.output]
    shape = tuple(getattr(made, "shape", ()))
    given = next((tuple(done.values[k].shape) for k in group.given()
                  if k not in graph.parameters and arrays.is_array(done.values.get(k))), shape)  # fmt: skip
    family, axes = _reading(group, given, shape, len(sources))
    if family in ("linear", "conv"):
        axis = len(shape) - 1 if family == "linear" else 1
        settings |= {"axis": axis, "out_axis": axis, "groups": 1}
    own = sorted((k for k in group.given() if k in graph.parameters), key=lambda k: group.role(k) == "bias")
    return Operation(group.kind, family, sources, shape, group.path, tuple(own), settings, axes=axes, leaves=leaves)


def _reading(group: Group, before: tuple[int, ...], after: tuple[int, ...], sources: int) -> tuple[str, Axes | None]:
    unchanged = tuple((i,) for i in range(len(after))) if len(before) == len(after) else None
    formulas = {node.formula for node in group.nodes}
    if group.family == "flatten":
        return "reshape", reshaped(before, after)
    if group.family == "pool":
        return ("average", unchanged) if group.kind.startswith("Avg") else ("pool", None)
    if group.family == "other" and formulas <= {"add", "subtract", "multiplication", "divide"}:
        return ("scale", unchanged) if sources < 2 else ("sum" if formulas <= {"add", "subtract"} else "product", unchanged)
    return group.family, unchanged if group.family == "batchnorm" else None
