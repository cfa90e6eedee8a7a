"""What a compiled step does with its inputs: in which order it uses its weights, and which input counts the optimiser's steps.

Trees of parameters are sorted by name, models are not. Names do not tell a count either: metrics count too, and begin anew with
every epoch, and Flax NNX and Equinox hand arrays on without their names. What is done with it does: optax adds one, and lets no
count run past the largest number."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

# What only brings a weight into another form.
FORMS = {"convert_element_type", "transpose", "broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p", "optimization_barrier"}
# What a layer is made of; the rest (a penalty on all weights, a cast) may come in any order.
LAYERS = {"dot_general", "conv_general_dilated", "gather", "ragged_dot_general"}
LARGEST = jnp.iinfo(jnp.int32).max
# What becomes of a count on its way: anything else (a remainder, a choice that depends on something else) makes another number.
STEPS = {"add", "lt", "select_n", "convert_element_type", "broadcast_in_dim", "copy", "copy_p", "optimization_barrier"}


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


def count_among(closed: Any, outputs: int) -> int | None:
    """Its place among the inputs; `outputs`: how many of the results are the step's own."""
    jaxpr = closed.jaxpr
    results = [v for v in jaxpr.outvars[:outputs] if not is_literal(v)]
    for place, variable in enumerate(jaxpr.invars):
        if variable.aval.shape != () or variable.aval.dtype != jnp.int32:
            continue
        made = {variable}
        if _follow(jaxpr, made) and any(v in made and v is not variable for v in results):
            return place
    return None


def _follow(jaxpr: Any, made: set[Any]) -> bool:
    """Adds what is made of these alone. Is one of them kept from running over?"""
    kept = False
    for equation in jaxpr.eqns:
        if not any(_is_in(v, made) for v in equation.invars):
            continue
        inner = inner_of(equation)
        if inner is not None and len(inner.invars) == len(equation.invars):
            within = set(_carried(inner.invars, equation.invars, made))
            kept |= _follow(inner, within)
            made |= set(_carried(equation.outvars, inner.outvars, within))
        elif equation.primitive.name in STEPS and all(is_literal(v) or v in made for v in equation.invars):
            kept |= equation.primitive.name == "lt" and _ends(equation.invars[1])
            made |= set(equation.outvars)
    return kept


def _carried(to: Iterable[Any], of: Iterable[Any], made: set[Any]) -> Iterable[Any]:
    return (one for one, other in zip(to, of, strict=False) if is_literal(other) or other in made)


def _is_in(variable: Any, made: set[Any]) -> bool:
    return not is_literal(variable) and variable in made


def _ends(variable: Any) -> bool:
    return is_literal(variable) and getattr(variable.val, "shape", ()) == () and int(variable.val) == LARGEST
