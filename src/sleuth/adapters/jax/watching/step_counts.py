"""Which input of a compiled step is the count of an optimiser's steps. Names do not tell: metrics count too, and begin anew with
every epoch, and Flax NNX and Equinox hand arrays on without their names. What is done with it does: optax adds one, and lets no
count run past the largest number."""

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

from sleuth.adapters.jax.watching.weight_order import inner_of, is_literal

LARGEST = jnp.iinfo(jnp.int32).max
# What becomes of a count on its way: anything else (a remainder, a choice that depends on something else) makes another number.
STEPS = {"add", "lt", "select_n", "convert_element_type", "broadcast_in_dim", "copy", "copy_p", "optimization_barrier"}


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
