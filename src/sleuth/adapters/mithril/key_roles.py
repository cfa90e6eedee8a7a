"""Which keys of a compiled model take the inputs and the target of a batch, and which hold its output and its loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sleuth.adapters.mithril.graph import Graph
from sleuth.core.errors import UnusableInput
from sleuth.core.subject import Parts


@dataclass(frozen=True)
class Wiring:
    loss: str | None  # the output that is the loss, where the model computes it
    outputs: tuple[str, ...]  # keys of the flat graph that are the model's answer
    inputs: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def data(self) -> tuple[str, ...]:
        return self.inputs + self.targets


def wire(graph: Graph, loss: Any) -> Wiring:
    """`loss` as the user gave it: the name of an output, a function, or None."""
    if isinstance(loss, str):
        if loss not in graph.outputs:
            raise UnusableInput(f"loss={loss!r} is no output of the model; it has {', '.join(graph.outputs)}.")
        return _with_loss(graph, loss)
    if loss is None and (key := graph.cost or _only_number(graph)) is not None:
        return _with_loss(graph, key)
    answers = {name: key for name, key in graph.outputs.items() if name != graph.cost} or graph.outputs
    used = graph.behind(answers.values())
    return Wiring(None, tuple(answers.values()), tuple(k for k in graph.data if k in used), ())


def _only_number(graph: Graph) -> str | None:
    """A single output without axes is a loss."""
    name = next(iter(graph.outputs), None) if len(graph.outputs) == 1 else None
    return name if name is not None and graph.physical.shapes.get(graph.outputs[name]) == [] else None


def _with_loss(graph: Graph, loss: str) -> Wiring:
    nodes = graph.loss_nodes(loss)
    compared = [node.sources["input"] for node in nodes if "input" in node.sources]
    others = [key for name, key in graph.outputs.items() if name != loss]
    answers = tuple(dict.fromkeys(compared or others))
    before = graph.behind(answers)
    targets = tuple(k for k in graph.data if k not in before)
    return Wiring(loss, answers, tuple(k for k in graph.data if k in before), targets)


def feed(wiring: Wiring, batch: Parts) -> dict[str, Any]:
    """The batch by key. Batches of (inputs, target) are told apart by what the loss compares with."""
    for tree in (batch.raw, batch.inputs):
        if isinstance(tree, Mapping) and set(wiring.inputs) <= set(tree):
            return {key: tree[key] for key in wiring.data if key in tree} | _one(wiring.targets, batch.target, tree)
    return _spread(wiring.inputs, batch.inputs) | _one(wiring.targets, batch.target, {})


def feed_inputs(wiring: Wiring, inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Mapping) and set(wiring.inputs) <= set(inputs):
        return {key: inputs[key] for key in wiring.inputs}
    return _spread(wiring.inputs, inputs)


def _spread(keys: tuple[str, ...], given: Any) -> dict[str, Any]:
    values = tuple(given.values()) if isinstance(given, Mapping) else given if isinstance(given, tuple | list) else (given,)
    if len(values) != len(keys):
        raise UnusableInput(
            f"the model takes {len(keys)} inputs ({', '.join(keys) or 'none'}), and a batch holds {len(values)}. "
            "Give batches as mappings by key: {" + ", ".join(f"'{k}': …" for k in keys) + "}."
        )
    return dict(zip(keys, values, strict=True))


def _one(keys: tuple[str, ...], target: Any, already: Mapping[str, Any]) -> dict[str, Any]:
    missing = [key for key in keys if key not in already]
    if len(missing) == 1 and target is not None:
        return {missing[0]: target}
    if isinstance(target, Mapping):
        return {key: target[key] for key in missing if key in target}
    return {}
