"""One step looked at in full: the values inside the model, and the loss that stands in it."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.loss_and_predictions import Judged, predictions
from sleuth.adapters.common.manual_loop.notes import Inside
from sleuth.adapters.listening.listener import Lost
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.graph import Graph
from sleuth.adapters.mithril.graph_walk import Walk, walk
from sleuth.adapters.mithril.key_roles import Wiring
from sleuth.adapters.mithril.observing import activity, inner_loss_call
from sleuth.adapters.mithril.tracing import find_origin
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Absent, Observation, Precision, Role


def look_inside(graph: Graph, wiring: Wiring, given: Mapping[str, Any], step: int, lost: Lost) -> Inside:
    """The functions of the model are computed once more, one by one: evaluate() hands out no inner values. What they made is
    measured later, where it is NumPy's: arrays that the loop may write into are copied."""
    try:
        with np.errstate(all="ignore"):
            done = walk(graph, {key: np.array(value) if isinstance(value, np.ndarray) else value for key, value in given.items()})
    except Unsupported as error:
        unseen = Absent(Role.ACTIVATION, str(error))
        return Inside(lambda: [unseen], 0)
    if done.error is not None:  # not of the user's: evaluate() has just come to its end
        lost("values inside the model could not be computed", done.error)
    made = [done.values[node.key] for node in done.made]
    if graph.physical.backend.backend_type == "numpy":
        size = sum(array.nbytes for array in made if isinstance(array, np.ndarray))
        return Inside(lambda: _told(graph, wiring, done, step), size)
    told = list(_told(graph, wiring, done, step))
    return Inside(lambda: told, 0)


def _told(graph: Graph, wiring: Wiring, done: Walk, step: int) -> Iterator[Observation]:
    yield from activity(graph, wiring, done, step)
    made = {g.path: done.values[g.output] for g in graph.groups if arrays.is_array(done.values.get(g.output))}
    yield Precision(step, {path: arrays.dtype(array) for path, array in made.items()})
    if done.error is None:
        yield from _inner_loss(graph, wiring, done, step)
        with np.errstate(all="ignore"):
            origin = find_origin(graph, done, step)
        yield from [] if origin is None else [origin]


def _inner_loss(graph: Graph, wiring: Wiring, done: Walk, step: int) -> Iterator[Observation]:
    value = done.values.get(graph.outputs.get(wiring.loss or "", ""))
    if wiring.loss is None or value is None:
        return
    nodes = graph.loss_nodes(wiring.loss)
    for node in nodes:
        yield inner_loss_call(graph, node, done, value)
    output, target = (done.values.get(nodes[0].sources.get(name, "")) for name in ("input", "target")) if nodes else (None, None)
    if len(nodes) == 1 and arrays.is_array(output) and arrays.is_array(target):
        plain, right = arrays.values(output), arrays.values(target)
        yield from predictions([Judged(nodes[0].kind, plain, plain, right, None, None)], step)
