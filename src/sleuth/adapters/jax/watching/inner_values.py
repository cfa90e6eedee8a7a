"""Inside the function that a gradient is taken of: while a second executable is traced, the function is traced by itself, and
what its layers and activations put out, and what its loss was given, leaves beside its gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from sleuth.adapters.jax.arrays import to_numpy
from sleuth.adapters.jax.layer_marks import Marks
from sleuth.adapters.jax.loss_calls import producer, word
from sleuth.adapters.jax.operations import Made, Operations
from sleuth.adapters.jax.tape import Tape
from sleuth.adapters.jax.watching import measuring
from sleuth.adapters.jax.watching.gradient_function import Learned, learned
from sleuth.adapters.jax.words import LOSSES
from sleuth.core.location import Location
from sleuth.core.reading.activation import ENDS

NOTED = ("linear", "conv", "embedding", "activation", "softmax")
# What a loss is given leaves the device as it is, up to so many numbers.
MOST_SCORES = 1 << 16


@dataclass(frozen=True)
class Story:
    """Who speaks, in the order of what `Telling` holds. Static: it travels with the compiled step."""

    layers: tuple[str, ...]
    units: tuple[tuple[str, str, int], ...]  # path, activation, samples
    loss: str | None = None  # the function of optax that was called
    place: Location | None = None
    producer: str | None = None  # what made the scores
    producer_place: Location | None = None


Telling = dict[str, Any]  # arrays


class Inside:
    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Any) -> None:
        """Raises where the function cannot be traced by itself."""
        leaves, self._tree = jax.tree_util.tree_flatten((args, kwargs))
        self._static = [None if _is_array(leaf) else leaf for leaf in leaves]
        self._dynamic = [_is_array(leaf) for leaf in leaves]
        out: list[Any] = []

        def flat(*given: Any) -> list[Any]:
            made, tree = jax.tree_util.tree_flatten(fun(*self._whole(given)[0], **self._whole(given)[1]))
            out[:] = [tree]
            return made

        self._given = [leaf for leaf in leaves if _is_array(leaf)]
        self._jaxpr = jax.make_jaxpr(flat)(*self._given)
        self._out = out[0]
        chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        marked = jax.tree_util.tree_leaves((tuple(_same(arg, i in chosen) for i, arg in enumerate(args)), _same(kwargs, False)))
        self._by = [by for by, dynamic in zip(marked, self._dynamic, strict=True) if dynamic]

    def _whole(self, given: Sequence[Any]) -> Any:
        waiting = iter(given)
        leaves = [next(waiting) if d else s for d, s in zip(self._dynamic, self._static, strict=True)]
        return jax.tree_util.tree_unflatten(self._tree, leaves)

    def function(self, *args: Any, **kwargs: Any) -> Any:
        """The same function: the user's own code is not called again."""
        given = [leaf for leaf in jax.tree_util.tree_leaves((args, kwargs)) if _is_array(leaf)]
        return jax.tree_util.tree_unflatten(self._out, jaxpr_as_fun(self._jaxpr)(*given))

    def learned(
        self, names: tuple[tuple[str, ...], ...], place: Location | None, *, everything: bool = False
    ) -> tuple[Learned, list[Any]] | None:
        """The function as a program of arrays, with what it was given. `names`: of the weights. `everything`: whatever it was
        given may be something else the next time."""
        consts = list(self._jaxpr.consts)
        by = [False] * len(consts) + self._by
        return learned(self._jaxpr, [*consts, *self._given], by, names, place, everything=everything)

    def told(self, paths: Sequence[str]) -> tuple[Story, Telling] | None:
        """`paths`: of the weights that the gradient is taken by."""
        if self._jaxpr.effects:  # done twice they would be seen twice
            return None
        jaxpr = self._jaxpr.jaxpr
        consts = list(self._jaxpr.consts)
        opened = SimpleNamespace(invars=[*jaxpr.constvars, *jaxpr.invars], constvars=[], eqns=jaxpr.eqns, outvars=jaxpr.outvars)
        given = [*consts, *self._given]
        trace = Told(Tape(SimpleNamespace(jaxpr=opened, consts=[])), [False] * len(consts) + self._by, given, paths)
        found = Operations(trace, inputs=[(f"input {slot}", slot) for slot in trace.data])  # type: ignore[arg-type]
        values = trace.tape.evaluate(given)
        loss = _loss(found, values)
        noted = [m for m in found.made if m.operation.family in NOTED and m.operation.shape and _is_floating(values[m.slot])]
        if not noted and loss is None:
            return None
        named = _named(noted)
        units = [(path, m) for path, m in named if m.activation and len(m.operation.shape) >= 2]
        arrays = [values[m.slot] for _, m in named]
        telling = _measured(arrays, [(values[m.slot], m.activation) for _, m in units])
        story = Story(
            tuple(path for path, _ in named),
            tuple((path, m.activation, int(m.operation.shape[0])) for path, m in units),
            None if loss is None else loss[0].operation.name,
            None if loss is None else loss[0].operation.location,
            *(_maker(found, values, loss[1]) if loss is not None else ()),
        )
        return story, telling if loss is None else {**telling, "scores": loss[1], "labels": loss[2]}


class Told:
    """What `Operations` needs to know of a trace."""

    def __init__(self, tape: Tape, by: list[bool], given: list[Any], paths: Sequence[str]) -> None:
        self.tape, self.marks = tape, Marks()
        self.same: dict[int, Any] = {}
        self.returned: dict[int, list[Any]] = {}
        slots = [slot for slot, weight, array in zip(tape.inputs, by, given, strict=True) if weight and _is_floating(array)]
        self.weights = dict(zip(slots, paths, strict=True))
        others = zip(tape.inputs, by, given, strict=True)
        # Running statistics are vectors of floats, and no data.
        self.data = [s for s, w, a in others if not w and _is_data(a) and not (a.ndim == 1 and _is_floating(a))]
        for entry in tape.entries:
            if entry.name == "name":
                self.same[entry.outputs[0]] = self.real(entry.inputs[0])

    def real(self, atom: Any) -> Any:
        while isinstance(atom, int) and atom in self.same:
            atom = self.same[atom]
        return atom


def _named(noted: list[Made]) -> list[tuple[str, Made]]:
    times: dict[str, int] = {}
    found = []
    for made in noted:
        operation = made.operation
        path = operation.layer or operation.name
        if operation.family in ("activation", "softmax"):
            path = operation.name
        times[path] = times.get(path, 0) + 1
        found.append((path if times[path] == 1 else f"{path}.{times[path]}", made))
    return found


def _loss(found: Operations, values: list[Any]) -> tuple[Made, Any, Any] | None:
    """The one call of a known loss, with what it was given: scores, and labels or targets."""
    calls = [m for m in found.made if m.operation.family == "loss" and m.operation.name in LOSSES]
    if len(calls) != 1:
        return None
    given = [values[slot] for slot in calls[0].given]
    scores = next((a for a in given if _is_floating(a) and a.ndim >= 1), None)
    labels = next((a for a in given if a is not scores and getattr(a, "ndim", 0) >= 1), None)
    if scores is None or labels is None or max(scores.size, labels.size) > MOST_SCORES:
        return None
    return calls[0], scores, labels


def _maker(found: Operations, values: list[Any], scores: Any) -> tuple[str | None, Location | None]:
    made = producer(found, next((slot for slot, value in enumerate(values) if value is scores), None))
    return (None, None) if made is None else (word(made), made.operation.location)


def _measured(arrays: list[Any], units: list[tuple[Any, str]]) -> Telling:
    arrays = jax.lax.optimization_barrier(arrays)
    if measuring.on_host():
        return {"arrays": arrays}
    sizes, counts = measuring.measure(arrays) if arrays else (None, None)
    elements = jnp.asarray([a.size for a in arrays], jnp.int32)
    return {"elements": elements, "sizes": sizes, "counts": counts, "units": [_units(jnp, *unit) for unit in units]}


def spoken(story: Story | None, telling: Telling) -> Telling:
    """With what is measured on the host in place of the arrays themselves."""
    if story is None or "arrays" not in telling:
        return telling
    rest = {key: value for key, value in telling.items() if key != "arrays"}
    arrays = [to_numpy(a) for a in telling["arrays"]]
    sizes, counts = measuring.measure_here(arrays)
    units = [_units(np, arrays[story.layers.index(path)], activation) for path, activation, _ in story.units]
    return {**rest, "elements": [a.size for a in arrays], "sizes": sizes, "counts": counts, "units": units}


def _units(of: Any, values: Any, activation: str) -> tuple[Any, ...]:
    """`of`: NumPy, or JAX's."""
    columns = values.reshape(-1, values.shape[-1])
    low, high = ENDS.get(activation, (-of.inf, of.inf))
    pinned = of.mean((columns <= low) | (columns >= high))
    return of.count_nonzero(columns, axis=0), columns.min(0), columns.max(0), pinned


def _same(tree: Any, mark: bool) -> Any:
    return jax.tree_util.tree_map(lambda leaf: mark, tree)


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


def _is_data(array: Any) -> bool:
    return array.ndim >= 1 and (_is_floating(array) or jnp.issubdtype(array.dtype, jnp.integer)) and array.size > 0


def _is_floating(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.floating))
