"""Shape errors of the compiler, which name no key: shapes are carried through the graph until two of them do not fit."""

from collections.abc import Mapping, Sequence
from typing import Any

from sleuth.adapters.mithril.graph import Graph, Node

Shape = list[Any]  # of ints, None where not known, "..." for any number of axes
SAME = ("relu", "leaky_relu", "gelu", "sigmoid", "softplus", "tanh", "softmax", "log", "sine", "cosine", "exp", "sqrt", "square")
BROADCASTS = ("add", "subtract", "multiplication", "divide", "squared_error", "absolute_error")


def explain(
    error: Exception, graph: Graph, declared: Mapping[str, Shape | None], wanted: Mapping[str, Sequence[int | None]]
) -> str:
    """The library's message, and the layer and keys behind it where they can be found."""
    said = f"{type(error).__name__}: {error}"
    found = clash(graph, declared, wanted)
    return f"{said} {found}" if found else f"{said} Keys and shapes given: {_listed(wanted)}."


def clash(graph: Graph, declared: Mapping[str, Shape | None], wanted: Mapping[str, Sequence[int | None]]) -> str | None:
    """The first place at which shapes do not fit, in words."""
    known: dict[str, Shape] = {k: list(v) for k, v in declared.items() if v is not None}
    for key, shape in wanted.items():
        if key in known and _merged(known[key], list(shape)) is None:
            return f"The key '{key}' is declared as {_shown(known[key])} and was given {_shown(list(shape))}."
        known[key] = list(shape)
    turned = {node.key: node.sources["input"] for node in graph.nodes if node.formula == "transpose"}
    for node in graph.nodes:
        made, complaint = _made(node, known, turned)
        if complaint:
            return f"In {node.layer or node.formula}: {complaint}."
        if made is not None:
            known[node.key] = made
    return None


def _made(node: Node, known: Mapping[str, Shape], turned: Mapping[str, str]) -> tuple[Shape | None, str | None]:
    given = {name: (key, known[key]) for name, key in node.sources.items() if key in known}
    if node.formula == "transpose" and "input" in given and len(given) == 1:
        return given["input"][1][::-1], None
    if node.formula == "matrix_multiplication" and {"left", "right"} <= given.keys():
        made, complaint = _multiplied(*given["left"], *given["right"])
        weight = turned.get(node.sources["right"], "")
        return made, f"{complaint} ({_of(weight, known[weight])}, transposed)" if complaint and weight in known else complaint
    if node.formula in SAME and "input" in given:
        return given["input"][1], None
    sides = [given[name] for name in ("left", "right") if name in given] or [
        given[name] for name in ("input", "target") if name in given
    ]
    if node.formula in BROADCASTS and len(sides) == 2:
        shape = _broadcast(sides[0][1], sides[1][1])
        return shape, None if shape is not None else f"{_of(*sides[0])} and {_of(*sides[1])} cannot be combined"
    return None, _targets(node, given)


def _targets(node: Node, given: Mapping[str, tuple[str, Shape]]) -> str | None:
    """A loss over classes wants one target for each row of scores."""
    if not node.formula.startswith("cross_entropy") or not {"input", "target"} <= given.keys():
        return None
    scores, target = given["input"], given["target"]
    if len(target[1]) != 1 or "..." in (*scores[1], *target[1]) or not scores[1]:
        return None
    if _merged(scores[1][:1], target[1]) is None:
        return f"{_of(*scores)} has {scores[1][0]} rows and {_of(*target)} has {target[1][0]} targets"
    return None


def _multiplied(left: str, one: Shape, right: str, other: Shape) -> tuple[Shape | None, str | None]:
    if not one or not other or one[-1] == "..." or "..." in other[-2:]:
        return None, None
    features, wanted = one[-1], other[-2] if len(other) > 1 else other[0]
    if features is not None and wanted is not None and features != wanted:
        return None, f"{_of(left, one)} has {features} features and {_of(right, other)} takes {wanted}"
    return [*one[:-1], *other[-1:]] if len(other) > 1 else one[:-1], None


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    if "..." in one or "..." in other:
        return one if "..." in one else other
    longest = max(len(one), len(other))
    made: Shape = []
    for a, b in zip([1] * (longest - len(one)) + one, [1] * (longest - len(other)) + other, strict=True):
        if None not in (a, b) and a != b and 1 not in (a, b):
            return None
        made.append(b if a == 1 else a if a is not None else b)
    return made


def _merged(one: Shape, other: Shape) -> Shape | None:
    if "..." in one or "..." in other:
        return other
    if len(one) != len(other) or any(None not in (a, b) and a != b for a, b in zip(one, other, strict=True)):
        return None
    return [b if a is None else a for a, b in zip(one, other, strict=True)]


def _of(key: str, shape: Shape) -> str:
    return f"'{key}' {_shown(shape)}"


def _shown(shape: Sequence[Any]) -> str:
    return "[" + ", ".join("?" if n is None else str(n) for n in shape) + "]"


def _listed(shapes: Mapping[str, Sequence[int | None]]) -> str:
    return ", ".join(_of(key, list(shape)) for key, shape in shapes.items())
