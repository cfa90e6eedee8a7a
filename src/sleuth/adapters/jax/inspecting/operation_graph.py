"""Which operation feeds which in one forward pass, and in which call of a layer each ran."""

from typing import Any

from sleuth.adapters.common.inspecting.layer_names import in_words
from sleuth.adapters.jax.failure import explain
from sleuth.adapters.jax.inspecting.forward_pass import visits
from sleuth.adapters.jax.inspecting.model_copy import Guest
from sleuth.adapters.jax.operations import Operations
from sleuth.core.contract.inspection import Node, Passage, Route
from sleuth.core.errors import UnusableInput


def route(model: Any, inputs: Any) -> Route:
    guest = Guest(model, inputs)
    try:
        trace = guest.trace()
    except Exception as error:
        raise UnusableInput(in_words(explain(error, "forward", guest.progress.marks.failed_in))) from None
    named = [(f"input {n}" if len(trace.batch) > 1 else "input", slot) for n, slot in enumerate(trace.batch)]
    found = Operations(trace, inputs=named)
    ended = sorted({at for slot in trace.outputs() if (at := found.maker(slot)) is not None})
    last = max(ended, default=len(found.made) - 1) + 1
    made = visits(guest, None, trace)
    first = {visit.path: number for number, visit in reversed(list(enumerate(made)))}
    nodes = tuple(
        Node(m.operation.name, m.operation.family, m.operation.shape, _visit(m.operation.layer, first), m.operation.sources)
        for m in found.made[:last]
    )
    return Route(nodes, Passage(made), tuple(ended))


def _visit(layer: str, first: dict[str, int]) -> int:
    while layer and layer not in first:
        layer = layer.rpartition(".")[0]
    return first.get(layer, 0)
