"""A traced function done again, with somebody who hears what its layers and operations put out and may change it.

Derivatives that were written by hand stay whole: a ReLU is laid open nowhere, else its gradient at zero would be another."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from jax.extend import core

from sleuth.adapters.jax.layer_marks import SCOPE
from sleuth.adapters.jax.words import FUNCTIONS

# Laid open, unless it is a known function; the derivative of what is inside is JAX's own.
OPENED = ("jit", "pjit", "closed_call")

# (visit of a layer or None, operation, its name, visits around it, value) → the value that takes its place
Hears = Callable[["Spoken"], Any]


class Spoken:
    """One value. `visit`: of the layer that returned it; None: an operation, of which `around` tells the layers."""

    def __init__(self, value: Any, visit: int | None, name: str, around: tuple[int, ...]) -> None:
        self.value, self.visit, self.name, self.around = value, visit, name, around


def listened(closed: Any, given: Sequence[Any], hears: Hears) -> list[Any]:
    return _run(closed.jaxpr, closed.consts, given, hears, ())


def _run(jaxpr: Any, consts: Sequence[Any], given: Sequence[Any], hears: Hears, around: tuple[int, ...]) -> list[Any]:
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, given, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else env[atom]

    for equation in jaxpr.eqns:
        taken = [read(atom) for atom in equation.invars]
        visits = around + tuple(
            n for n in map(int, re.findall(rf"{SCOPE}(\d+)", str(equation.source_info.name_stack))) if n not in around
        )
        made = _made(equation, taken, hears, visits)
        env.update(zip(equation.outvars, made, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _made(equation: Any, taken: list[Any], hears: Hears, visits: tuple[int, ...]) -> list[Any]:
    primitive, params = equation.primitive, equation.params
    label = str(params.get("name", "")) if primitive.name in (*OPENED, "name") else ""
    if primitive.name == "name":
        if not label.startswith(SCOPE):
            return taken
        return [hears(Spoken(taken[0], int(label.removeprefix(SCOPE)), "", visits))]
    if primitive.name in OPENED and label not in FUNCTIONS:
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        return _run(inner.jaxpr, inner.consts, taken, hears, visits)
    bound = primitive.get_bind_params(params)
    functions, words = bound if isinstance(bound, tuple) else ((), bound)
    made = primitive.bind(*functions, *taken, **words)
    made = list(made) if primitive.multiple_results else [made]
    name = label or _hand_written(params) or primitive.name
    return [hears(Spoken(made[0], None, FUNCTIONS.get(name, name), visits)), *made[1:]]


def _hand_written(params: Any) -> str:
    inner = params.get("call_jaxpr", params.get("fun_jaxpr"))
    info = getattr(getattr(inner, "jaxpr", inner), "debug_info", None)
    return str(getattr(info, "func_name", "") or "")
