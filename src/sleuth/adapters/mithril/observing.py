"""What one walk through a model shows: a Frame of all layers' outputs, Units of the activations, and the call of the loss."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.activity import units_of, usual_axis
from sleuth.adapters.common.axis_sums import axis_sums, exp_sums
from sleuth.adapters.common.loss_values import array_facts, broadcast_of
from sleuth.adapters.mithril import arrays, kinds
from sleuth.adapters.mithril.graph import Graph, Node
from sleuth.adapters.mithril.graph_walk import Walk
from sleuth.adapters.mithril.key_roles import Wiring
from sleuth.core.observation import Absent, Argument, Frame, LossCall, Observation, Role, Units

# Reshapes and the like between a softmax and the loss keep its values.
CARRIES = ("reshape", "flatten", "transpose", "squeeze", "buffer", "expand_dims", "permute_tensor")


def activity(graph: Graph, wiring: Wiring, done: Walk, step: int) -> Iterator[Observation]:
    """Of the layers that the answer is computed by: what a loss inside the model adds is not the model's."""
    ran = {node.key for node in done.made} & graph.behind(wiring.outputs)
    made = [(group, done.values[group.output]) for group in graph.groups if group.output in ran]
    made = [(group, array) for group, array in made if arrays.is_array(array) and len(array.shape) > 0]
    if made:
        table = arrays.measure([array for _, array in made])
        yield Frame(step, Role.ACTIVATION, tuple(group.path for group, _ in made), table)
    active = [(g, arrays.values(a)) for g, a in made if g.family == "activation" and len(a.shape) >= 2]
    yield from (units_of(step, g.path, kinds.ACTIVATIONS[g.kind], a, usual_axis(a)) for g, a in active)
    if made and not active:
        yield Absent(Units, "no layer of the model is an activation (Relu, Sigmoid, Tanh, …)")


def inner_loss_call(graph: Graph, node: Node, done: Walk, value: Any, *, failed: bool = False) -> LossCall:
    """A loss that stands in the model."""
    output, target = (done.values.get(node.sources.get(name, "")) for name in ("input", "target"))
    reduction = next((kinds.REDUCTIONS[n.formula] for n in graph.nodes
                      if n.formula in kinds.REDUCTIONS and node.key in n.sources.values()), None)  # fmt: skip
    family = kinds.LOSSES[node.formula]
    returned = done.values.get(node.key)
    return loss_call(
        node.kind, family, reduction, value, output, target, returned=returned, facts=_producer(graph, node, done), failed=failed
    )


def loss_call(
    name: str,
    family: str,
    reduction: str | None,
    value: Any,
    output: Any,
    target: Any,
    *,
    returned: Any = None,
    facts: Mapping[str, Any] | None = None,
    failed: bool = False,
) -> LossCall:
    number = None if value is None else arrays.values(value)
    whole = None if number is None or number.size != 1 or not np.isfinite(number).all() else float(number.reshape(()))
    called = number if returned is None else arrays.values(returned)
    broadcast = None
    if family in ("mse", "l1", "huber") and arrays.is_array(output) and arrays.is_array(target) and not failed:
        broadcast = broadcast_of(arrays.values(output), arrays.values(target))
    return LossCall(
        name=name,
        family=family,
        value=whole,
        arguments=tuple(_arguments((("output", output), ("target", target)), facts or {})),
        output_shape=() if number is None else tuple(number.shape),
        broadcast=broadcast,
        reduction=reduction,
        returned=float(called.mean()) if called is not None and called.size and np.isfinite(called).all() else None,
        failed=failed,
    )


def _arguments(sides: Iterable[tuple[str, Any]], facts: Mapping[str, Any]) -> Iterator[Argument]:
    for role, array in sides:
        if array is None or not arrays.is_array(array):
            continue
        values = arrays.values(array)
        more = facts if role == "output" else {}
        sums, exps = axis_sums(values), exp_sums(values)
        yield Argument(facts=array_facts(role, values), role=role, axis_sums=sums, exp_sums=exps, **more)


def producer_facts(graph: Graph, key: str, done: Walk) -> dict[str, Any]:
    """The function that made an output: softmax, sigmoid, …; and the one before it."""
    by_key = {node.key: node for node in graph.nodes}
    node = _carried(by_key, key)
    if node is None:
        return {}
    name, axis = _name(by_key, node), None
    softmax = node if name == "softmax" else by_key.get(node.sources.get("input", "")) if name == "log_softmax" else None
    if softmax is not None:
        given = done.values.get(softmax.sources.get("axis", ""))
        rank = len(done.values[softmax.key].shape)
        axis = given % rank if isinstance(given, int) else rank - 1
        node = softmax
    before = _carried(by_key, node.sources.get("input", ""))
    return {"producer": name, "producer_axis": axis, "behind": None if before is None else _name(by_key, before)}


def _producer(graph: Graph, node: Node, done: Walk) -> dict[str, Any]:
    return producer_facts(graph, node.sources.get("input", ""), done)


def _carried(by_key: Mapping[str, Node], key: str) -> Node | None:
    node = by_key.get(key)
    while node is not None and node.formula in CARRIES:
        node = by_key.get(node.sources.get("input", ""))
    return node


def _name(by_key: Mapping[str, Node], node: Node) -> str:
    """The common word: Log after Softmax is a log_softmax."""
    inner = by_key.get(node.sources.get("input", ""))
    if node.formula == "log" and inner is not None and inner.formula == "softmax":
        return "log_softmax"
    family = kinds.FAMILIES.get(node.kind, "")
    return kinds.ACTIVATIONS[node.kind] if family == "activation" else family if family in ("linear", "conv") else node.formula
