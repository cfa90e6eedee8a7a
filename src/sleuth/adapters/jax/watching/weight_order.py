"""In which order a compiled step uses its weights: trees of parameters are sorted by name, models are not."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# What only brings a weight into another form.
FORMS = {"convert_element_type", "transpose", "broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p", "optimization_barrier"}
# What a layer is made of; the rest (a penalty on all weights, a cast) may come in any order.
LAYERS = {"dot_general", "conv_general_dilated", "gather", "ragged_dot_general"}


def order_of_use(closed: Any, places: Sequence[int], count: int) -> list[int]:
    """Positions of the weights, the first to be used first. Unchanged where it cannot be told."""
    if not places:
        return list(range(count))
    jaxpr = closed.jaxpr
    first: dict[int, tuple[int, int]] = {}
    weights = {jaxpr.invars[place]: number for number, place in enumerate(places) if place < len(jaxpr.invars)}
    for at, (number, primitive) in enumerate(_uses(jaxpr, weights)):
        rank = (0 if primitive in LAYERS else 1, at)
        first[number] = min(first.get(number, rank), rank)
    in_layers = [at for kind, at in first.values() if kind == 0]
    if not in_layers:
        return list(range(count))
    return sorted(range(count), key=lambda number: first[number][1] if number in first else len(first) * 1000)


def _uses(jaxpr: Any, weights: Mapping[Any, int]) -> Iterator[tuple[int, str]]:
    known = dict(weights)
    for equation in jaxpr.eqns:
        carried = {i: known[v] for i, v in enumerate(equation.invars) if _is_known(v, known)}
        if not carried:
            continue
        inner = inner_of(equation)
        if inner is not None and len(inner.invars) == len(equation.invars):
            yield from _uses(inner, {inner.invars[i]: number for i, number in carried.items()})
        elif equation.primitive.name in FORMS:
            for i, number in carried.items():
                if i < len(equation.outvars):
                    known[equation.outvars[i]] = number
        else:
            yield from ((number, equation.primitive.name) for number in carried.values())


def _is_known(variable: Any, known: Mapping[Any, int]) -> bool:
    return not is_literal(variable) and variable in known


def is_literal(variable: Any) -> bool:
    """Those have a value, and no hash."""
    return hasattr(variable, "val")


def inner_of(equation: Any) -> Any:
    for word in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        found = equation.params.get(word)
        if found is not None:
            return getattr(found, "jaxpr", found)
    return None
