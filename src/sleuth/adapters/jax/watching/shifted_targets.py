"""An array of a batch that is input and target at once, as where each letter is to tell the next: what the loss function cuts out
of it first becomes a batch of its own, so that the two are told apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax.extend.core import Literal, Var, jaxpr_as_fun

from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.watching.gradient_function import Learned
from sleuth.adapters.jax.watching.inlined_jaxpr import closed_of
from sleuth.adapters.jax.watching.second_form import JIT

# They move values, or cast them, and make no new ones.
MOVING = ("slice", "squeeze", "reshape", "transpose", "convert_element_type", "copy", "copy_p", "rev")


@dataclass(frozen=True)
class Cut:
    """`whole`: the place of the array among the inputs of the function; `parts`: those of what is cut out of it."""

    whole: int
    parts: tuple[int, ...]
    size: int  # samples
    run: Any

    def of(self, array: Any) -> list[np.ndarray]:
        """Of any number of samples."""
        values = to_numpy(array)
        made = []
        for begin in range(0, len(values), self.size):
            rows = values[begin : begin + self.size]
            full = np.take(rows, np.arange(self.size), axis=0, mode="wrap")
            made.append([to_numpy(part)[: len(rows)] for part in self.run(full)])
        return [np.concatenate(column) for column in zip(*made, strict=True)]


def cut_apart(learned: Learned, data: Sequence[int]) -> tuple[Learned, tuple[Cut, ...]]:
    """The function as one of the parts as well, wherever an array of the batch is used by its parts alone."""
    jaxpr = learned.closed.jaxpr
    cuts: list[Cut] = []
    inputs, gone = list(jaxpr.invars), set()
    for place in data:
        within, ends = _parts(jaxpr, jaxpr.invars[place])
        if len(ends) < 2:
            continue
        moved = [equation for at, equation in enumerate(jaxpr.eqns) if at in within]
        alone = closed_of(jaxpr, [jaxpr.invars[place]], moved, ends)
        count = int(jaxpr.invars[place].aval.shape[0])
        cuts.append(Cut(place, tuple(range(len(inputs), len(inputs) + len(ends))), count, JIT(jaxpr_as_fun(alone))))
        inputs += ends
        gone |= within
    if not cuts:
        return learned, ()
    equations = [equation for at, equation in enumerate(jaxpr.eqns) if at not in gone]
    passed = (*learned.passed, *(part for cut in cuts for part in cut.parts))
    return replace(learned, closed=closed_of(jaxpr, inputs, equations, list(jaxpr.outvars)), passed=passed), tuple(cuts)


def _parts(jaxpr: Any, whole: Any) -> tuple[set[int], list[Var]]:
    """The equations that only move what is in it, and what of their results is used by others. None where it is used itself."""
    made, within = {whole}, set()
    ends: dict[Any, None] = {}
    for at, equation in enumerate(jaxpr.eqns):
        taken = [v for v in equation.invars if not isinstance(v, Literal) and v in made]
        if not taken:
            continue
        if _moves(equation, whole):
            within.add(at)
            made |= set(equation.outvars)
        else:
            ends.update(dict.fromkeys(taken))
    ends.update(dict.fromkeys(v for v in jaxpr.outvars if not isinstance(v, Literal) and v in made))
    return (set(), []) if whole in ends else (within, list(ends))


def _moves(equation: Any, whole: Any) -> bool:
    """With the samples where they are."""
    if equation.primitive.name not in MOVING or len(equation.invars) != 1 or len(equation.outvars) != 1:
        return False
    before, after = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    if not after or after[0] != before[0] or before[0] != whole.aval.shape[0]:
        return False
    if equation.primitive.name == "transpose":
        return bool(equation.params["permutation"][0] == 0)
    return not (equation.primitive.name == "rev" and 0 in equation.params["dimensions"])
