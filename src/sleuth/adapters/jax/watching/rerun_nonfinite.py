"""Where the NaN of a watched step was born: the step is done again, one operation at a time, with what it was given."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.origin import origin_on
from sleuth.adapters.jax.tape import Tape
from sleuth.adapters.jax.watching.measuring import COUNTS
from sleuth.core.observation import NotFinite, Observation, Origin

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.nonfinite_check import Remembered

BROKEN = [COUNTS.index("nans"), COUNTS.index("infs")]

TAKEN = "the step takes the memory of its arguments (donation), so it could not be done again to find the operation"
NOT_KEPT = "what the steps are given is too large to be kept, so the operation that broke the loss was not looked for"
UNKNOWN = "the step was not traced with statistics, so the operation that broke the loss was not looked for"


def inquire(first: "Remembered", before: "Remembered | None", remarks: list[str]) -> Iterator[Observation]:
    """`first`: the first step whose loss is not finite; `before`: the one ahead of it, whose loss is."""
    known = len(remarks)
    born = _origin(first, "forward", remarks)
    # Else the weights came in broken: by the gradient of the step before.
    if born is None and before is not None and len(remarks) == known:
        born = _origin(before, "backward", remarks)
        if born is not None:
            yield _broken_gradient(before) or NotFinite(before.step, "gradient", nans=born.nans, infs=born.infs)
    if born is not None:
        yield born


def gradient_origin(remembered: "Remembered", remarks: list[str]) -> Iterator[Observation]:
    born = _origin(remembered, "backward", remarks)
    if born is not None:
        yield born


def _broken_gradient(remembered: "Remembered") -> NotFinite | None:
    """By the name of the first parameter whose gradient is not finite. None where it cannot be told."""
    channel = remembered.compiled.looked_back(remembered.given)
    for part, (_, _, counts) in zip(channel.parts, channel.values, strict=True) if channel is not None else ():
        if not part.is_gradient or part.times:
            continue
        for place in remembered.compiled.order[part]:
            nans, infs = (int(n) for n in np.asarray(counts)[place, BROKEN])
            if nans or infs:
                return NotFinite(remembered.step, "gradient", part.lane.paths[place], nans, infs)
    return None


def _origin(remembered: "Remembered", direction: str, remarks: list[str]) -> Origin | None:
    if remembered.given is None:
        remarks.append(NOT_KEPT)
        return None
    form = remembered.compiled.form_for(remembered.given)
    if form is None:
        remarks.append(UNKNOWN)
        return None
    flat = form.inputs(remembered.given)
    if any(getattr(leaf, "is_deleted", lambda: False)() for leaf in flat):
        remarks.append(TAKEN)
        return None
    tape = Tape(needed_for(form.jaxpr, form.losses if direction == "forward" else range(form.outputs)))
    return origin_on(tape, flat, Marks(), direction, remembered.step, tape.outputs)


def needed_for(closed: Any, chosen: Iterable[int]) -> Any:
    """Only the equations behind these outputs: each kind of them is compiled by itself when it is done again."""
    jaxpr = closed.jaxpr
    outputs = [jaxpr.outvars[number] for number in chosen]
    wanted = {variable for variable in outputs if not hasattr(variable, "val")}  # a literal has a value, and no hash
    kept = []
    for equation in reversed(jaxpr.eqns):
        if not wanted.isdisjoint(equation.outvars):
            kept.append(equation)
            wanted |= {variable for variable in equation.invars if not hasattr(variable, "val")}
    names = None if jaxpr.debug_info is None else jaxpr.debug_info._replace(result_paths=None)
    return closed.replace(jaxpr=jaxpr.replace(eqns=kept[::-1], outvars=outputs, debug_info=names))
