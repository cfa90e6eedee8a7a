"""Which operation feeds which in one forward pass, and in which call of a part each ran."""

import inspect
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.inspecting.layer_names import require_passage
from sleuth.adapters.torch.bench import _tensors
from sleuth.adapters.torch.flow import FlowNotes
from sleuth.adapters.torch.inspecting.forward_pass import passage
from sleuth.adapters.torch.inspecting.layer_calls import Visitor
from sleuth.adapters.torch.inspecting.model_copy import guest
from sleuth.adapters.torch.pass_listener import Listener, Op
from sleuth.core.contract.inspection import Node, Passage, Route
from sleuth.core.subject import call_model


def route(model: nn.Module, inputs: Any) -> Route:
    with guest(model) as visited:
        listener, visitor = Listener(visited), Visitor(visited)
        notes = FlowNotes(listener, visited)
        owners: list[int] = []

        def own(op: Op | None = None, output: Any = None) -> None:
            """The operations that were noted since belong to the innermost call."""
            owners.extend([visitor.stack[-1] if visitor.stack else -1] * (len(notes.flow().operations) - len(owners)))

        def layer(path: str, module: nn.Module, output: Any) -> None:
            """What a layer makes of no input, such as the embedding of positions, comes from that layer."""
            if any(True for _ in module.parameters()):
                notes.expect({path.rpartition(".")[2]: output})
                own()

        native = _tensors(inputs)
        notes.expect(_named(visited, native))
        own()
        listener.on_op.append(own)
        listener.on_layer.append(layer)
        try:
            # The listener's hooks come first: when it tells of a layer's end, the visit is still open.
            with torch.enable_grad(), listener.listening(), visitor.following():
                call_model(visited, visited.forward, native)
        except Exception:
            require_passage(passage(model, inputs))
            raise
    own()
    flow = notes.flow()
    nodes = (
        Node(o.name.strip("_"), o.family, o.shape, owner, o.sources) for o, owner in zip(flow.operations, owners, strict=True)
    )
    return Route(tuple(nodes), Passage(visitor.visits(), flops_counted=False), flow.outputs)


def _named(model: nn.Module, inputs: Any) -> Any:
    """Several inputs are called as the forward calls them."""
    if not isinstance(inputs, tuple) or hasattr(inputs, "_fields"):
        return inputs
    names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return dict(zip([*names, *map(str, range(len(names), len(inputs)))], inputs, strict=False))
