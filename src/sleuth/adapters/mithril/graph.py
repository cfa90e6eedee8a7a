"""Reading the flat graph of a physical model: what is computed from what, and which layer of the logical model it belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sleuth.adapters.mithril import kinds

CACHE = "_cache"  # of a backend that differentiates by hand: what a function leaves for its gradient


@dataclass(frozen=True)
class Node:
    """One function of the compiled model. `sources`: argument → key."""

    key: str
    formula: str
    sources: Mapping[str, str]
    layer: str
    kind: str


@dataclass(frozen=True)
class Group:
    """A layer: its functions in order. What it hands on is what the last one made."""

    path: str
    kind: str
    nodes: tuple[Node, ...]

    @property
    def family(self) -> str:
        return kinds.FAMILIES.get(self.kind, "other")

    @property
    def output(self) -> str:
        return self.nodes[-1].key

    def given(self) -> list[str]:
        """Keys that come from outside, in the order of use."""
        made = {node.key for node in self.nodes}
        return list(dict.fromkeys(k for node in self.nodes for k in node.sources.values() if k not in made))

    def role(self, parameter: str) -> str:
        """What the layer uses a parameter as: its own word for it, or bias where it is added, else weight."""
        uses = [(node.formula, name) for node in self.nodes for name, key in node.sources.items() if key == parameter]
        named = [name for _, name in uses if name in ("weight", "bias")]
        return named[0] if named else "bias" if all(formula == "add" for formula, _ in uses) else "weight"


class Graph:
    def __init__(self, physical: Any) -> None:
        self.physical = physical
        flat = physical.flat_graph
        self._names: dict[Any, dict[Any, str]] = {}
        self._behind: dict[tuple[str, ...], frozenset[str]] = {}
        self.outputs: dict[str, str] = dict(flat.output_dict)
        self.constants: dict[str, Any] = {k: v for k, v in flat.cached_data.items() if not k.endswith(CACHE)}
        self.state = tuple(item.in_key for item in physical.state_keys)
        order = [key for key in flat.topological_order if key not in flat.unused_keys and key not in self.constants]
        self.nodes = tuple(self._node(key) for key in order)
        made = {node.key for node in self.nodes}
        used = [k for node in self.nodes for k in node.sources.values() if k not in made and k not in self.constants]
        run_time = set(flat.runtime_static_keys) | set(self.state)
        self.data = tuple(dict.fromkeys(k for k in used if k in run_time and k not in self.state))
        self.parameters = tuple(dict.fromkeys(k for k in used if k not in run_time))

    def _node(self, key: str) -> Node:
        flat = self.physical.flat_graph
        operator = flat.get_op(key)
        names = list(operator.input_keys)
        sources = dict(zip(names, flat.get_source_keys(key), strict=False))
        path, layer = self._place(operator)
        return Node(key, operator.formula_key, sources, path, kinds.known_name(type(layer)) or type(layer).__name__)

    def _place(self, operator: Any) -> tuple[str, Any]:
        """The path in the logical model of the layer that an operator is part of, and that layer."""
        chain = [_unfused(operator)]
        while getattr(chain[-1], "parent", None) is not None:
            chain.append(chain[-1].parent)
        root, inside = chain[-1], chain[-2::-1]  # the outermost first, the operator last
        trained = getattr(root, "_model", None)  # a TrainModel wraps the user's model: its name says nothing
        path: list[str] = []
        holder, found = root, inside[0] if inside else operator
        for model in inside if chain[0] is not operator else inside[:-1] or inside:
            if not (model is trained and holder is root):
                path.append(self._name(holder, model))
            holder, found = model, model
            if kinds.known_name(type(model)) is not None:
                break
        return ".".join(path), found

    def _name(self, holder: Any, model: Any) -> str:
        names = self._names.setdefault(holder, dict(holder.get_unique_submodel_names()))
        return names.get(model) or model.name or type(model).__name__

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Layers in the order in which they finish."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.layer, []).append(node)
        last = {path: self.nodes.index(nodes[-1]) for path, nodes in found.items()}
        return tuple(Group(path, found[path][0].kind, tuple(found[path])) for path in sorted(found, key=last.__getitem__))

    def behind(self, keys: Iterable[str]) -> frozenset[str]:
        """These keys and every key that they are computed from."""
        wanted = tuple(keys)
        if wanted not in self._behind:
            self._behind[wanted] = frozenset(self._found_behind(wanted))
        return self._behind[wanted]

    def _found_behind(self, keys: tuple[str, ...]) -> set[str]:
        by_key = {node.key: node for node in self.nodes}
        found: set[str] = set()
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            found.add(key)
            waiting += by_key[key].sources.values() if key in by_key else ()
        return found

    def holder(self, parameter: str) -> Group | None:
        """The first layer that uses a parameter."""
        return next((group for group in self.groups if parameter in group.given()), None)

    @cached_property
    def cost(self) -> str | None:
        """The key that a TrainModel adds up its losses to."""
        return "final_cost" if "final_cost" in self.outputs else None

    def loss_nodes(self, key: str) -> list[Node]:
        """The losses that the output `key` is made of."""
        behind = self.behind([self.outputs.get(key, key)])
        return [node for node in self.nodes if node.key in behind and node.formula in kinds.LOSSES]


def _unfused(operator: Any) -> Any:
    """Where a backend has one function for a whole layer the compiler puts an operator in its place: the layer that it was."""
    parts = getattr(operator.parent, "dag", None) or {}
    if operator in parts or not hasattr(operator.conns, "get_data"):
        return operator
    made = operator.conns.get_data("output")
    return next((part for part in parts if part.conns.get_data("output") is made), operator)
