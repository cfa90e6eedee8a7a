"""The function that a gradient is taken of, parted into model and loss by what flows where.

A model's inputs are what meets weights; targets are what its answers meet after the last of the weights."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Literal

from sleuth.adapters.jax.tape import known_function
from sleuth.adapters.jax.watching.float64 import widening
from sleuth.adapters.jax.watching.inlined_jaxpr import closed_of
from sleuth.adapters.jax.words import LOSSES

# They bring an answer into the form of what it is compared with.
SPREADING = ("broadcast_in_dim", "convert_element_type", "stop_gradient", "name")


@dataclass(frozen=True)
class Division:
    """Places among the inputs of the function."""

    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    output: Any  # the variable
    at: int  # the equation that makes it


class Flow:
    """Of a function that is laid open: what depends on weights, and on which of the data."""

    def __init__(self, jaxpr: Any, weights: Iterable[int], data: Iterable[int]) -> None:
        self.jaxpr = jaxpr
        self.weights = {jaxpr.invars[i] for i in weights}
        self.places = {jaxpr.invars[i]: i for i in data}
        self.learned: dict[Any, bool] = dict.fromkeys(self.weights, True)  # depends on weights
        self.fed: dict[Any, frozenset[int]] = {var: frozenset({i}) for var, i in self.places.items()}
        self.layers: list[int] = []  # equations in which data meets weights
        for at, equation in enumerate(jaxpr.eqns):
            taken = variables(equation.invars)
            learned = any(self.learned.get(v) for v in taken)
            fed = frozenset().union(*(self.fed.get(v, frozenset()) for v in taken))
            # A penalty on all weights is one number.
            if fed and any(self.learned.get(v) and not self.fed.get(v) and v.aval.shape for v in taken):
                self.layers.append(at)
            for var in equation.outvars:
                self.learned[var], self.fed[var] = learned, fed

    def answers(self, var: Any) -> bool:
        """Made of weights and data."""
        return bool(self.learned.get(var) and self.fed.get(var))

    def given(self, var: Any) -> bool:
        """Data as it came, or made of such alone."""
        return bool(self.fed.get(var)) and not self.learned.get(var)


def divided(jaxpr: Any, weights: Sequence[int], data: Sequence[int]) -> Division | None:
    """None where the answers of the model do not go to the loss as one array."""
    flow = Flow(jaxpr, weights, data)
    if not flow.layers or isinstance(jaxpr.outvars[0], Literal):
        return None
    needed = _behind(jaxpr, [jaxpr.outvars[0]])
    layers = [at for at in flow.layers if at in needed]
    if not layers:
        return None
    compared = next((at for at in sorted(needed) if at > layers[-1] and _compares(flow, at)), len(jaxpr.eqns))
    known = next((at for at in sorted(needed) if at >= layers[-1] and _is_loss(jaxpr.eqns[at])), compared)
    output, made = _narrow(flow, needed, layers[-1], min(compared, known))
    if output is None:
        return None
    inputs = _inputs(flow, output)
    beside = [at for at in needed if at > made]
    given = {p for at in beside for v in variables(jaxpr.eqns[at].invars) if flow.given(v) for p in flow.fed[v]}
    return Division(inputs, tuple(sorted(given)), output, made)


def _narrow(flow: Flow, needed: set[int], first: int, last: int) -> tuple[Any, int]:
    """The latest array that all answers go through, made before the equation `last`."""
    equations = flow.jaxpr.eqns
    for at in sorted((n for n in needed if first <= n < last), reverse=True):
        equation = equations[at]
        found = [v for v in equation.outvars if flow.answers(v) and jnp.issubdtype(v.aval.dtype, jnp.inexact)]
        if len(found) != 1 or not found[0].aval.shape or equation.primitive.name in SPREADING:
            continue
        if _is_gate(flow, needed, at, found[0]):
            return found[0], at
    return None, -1


def _is_gate(flow: Flow, needed: set[int], made: int, gate: Any) -> bool:
    """Does nothing that is made of weights and data reach the loss beside it?"""
    reached = {v for v in flow.places if not flow.learned.get(v)}
    learned = {v for v, yes in flow.learned.items() if yes and not flow.fed.get(v)}
    answers: set[Any] = set()
    for at in sorted(needed):
        equation = flow.jaxpr.eqns[at]
        taken = variables(equation.invars)
        mixed = any(v in answers for v in taken) or (any(v in reached for v in taken) and any(v in learned for v in taken))
        fed = any(v in reached for v in taken)
        for var in equation.outvars:
            if var is gate:
                continue
            if mixed:
                answers.add(var)
            elif fed and not flow.learned.get(var):
                reached.add(var)
    return flow.jaxpr.outvars[0] not in answers


def _inputs(flow: Flow, output: Any) -> tuple[int, ...]:
    return tuple(sorted(flow.fed[output]))


def _compares(flow: Flow, at: int) -> bool:
    """Answers meet data as it came."""
    taken = variables(flow.jaxpr.eqns[at].invars)
    return any(flow.answers(v) for v in taken) and any(flow.given(v) for v in taken)


def _is_loss(equation: Any) -> bool:
    trace = equation.source_info.traceback
    names = (known_function(frame.function_name) for frame in (trace.frames if trace else ()))
    return any(name in LOSSES for name in names if name)


def _behind(jaxpr: Any, ends: Iterable[Any], stop: Any = None) -> set[int]:
    """The equations that these are made by, `stop` being there already."""
    wanted = set(variables(ends))
    found = set()
    for at in range(len(jaxpr.eqns) - 1, -1, -1):
        equation = jaxpr.eqns[at]
        if any(var in wanted and var is not stop for var in equation.outvars):
            found.add(at)
            wanted |= set(variables(equation.invars))
    return found


def variables(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def to_output(jaxpr: Any, division: Division) -> Any:
    """The model: of all inputs of the function."""
    kept = _behind(jaxpr, [division.output])
    return widening(closed_of(jaxpr, list(jaxpr.invars), [jaxpr.eqns[at] for at in sorted(kept)], [division.output]))


def from_output(jaxpr: Any, division: Division) -> tuple[Any, set[int]]:
    """The loss: of the output and all inputs of the function; and which of those it needs."""
    kept = sorted(_behind(jaxpr, [jaxpr.outvars[0]], division.output))
    equations = [jaxpr.eqns[at] for at in kept if division.output not in jaxpr.eqns[at].outvars]
    used = {v for equation in equations for v in variables(equation.invars)}
    needed = {place for place, var in enumerate(jaxpr.invars) if var in used}
    closed = closed_of(jaxpr, [division.output, *jaxpr.invars], equations, [jaxpr.outvars[0]])
    return widening(closed), needed
