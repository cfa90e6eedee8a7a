"""Which operation feeds which in one forward pass, and in which call of a part each ran."""

from typing import Any

from keras.src.ops.operation import Operation as KerasOperation

from sleuth.adapters.keras.flow import FlowNotes
from sleuth.adapters.keras.inspecting.forward_pass import say_why_it_fails
from sleuth.adapters.keras.inspecting.layer_calls import Visitor
from sleuth.adapters.keras.inspecting.model_copy import call, guest, native
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.core.contract.inspection import Node, Passage, Route


def route(model: Any, inputs: Any) -> Route:
    with guest(model) as visited:
        hearing, visitor = Hearing(visited), Visitor(visited)
        notes = FlowNotes(hearing, training=False)
        owners: list[int] = []

        def own(*told: Any) -> None:
            """The operations that were noted since belong to the innermost call."""
            owners.extend([visitor.stack[-1] if visitor.stack else -1] * (len(notes.operations) - len(owners)))

        given = native(inputs)
        notes.expect(given)
        own()
        hearing.on_layer.append(own)
        try:
            # The visitor's patch lies around the hearing's: when that tells of a layer's end, the visit is still open.
            with replaced(KerasOperation, "__call__", notes.operation), hearing.listening(), visitor.following():
                output = call(visited, given)
        except Exception:
            say_why_it_fails(model, inputs)
            raise
        own()
        flow = notes.flow(output)
        own()
    operations = flow.operations
    owners += [-1] * (len(operations) - len(owners))
    nodes = tuple(Node(o.name, o.family, o.shape, owner, o.sources) for o, owner in zip(operations, owners, strict=True))
    return Route(nodes, Passage(visitor.visits(), flops_counted=False), flow.outputs)
