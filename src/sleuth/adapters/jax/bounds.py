"""Rows of a weight that are asked for and are not there. JAX does not look: it reads the nearest row, or fills in NaN."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sleuth.adapters.jax.source_lines import written_at
from sleuth.adapters.jax.tape import Entry, Tape, read, run
from sleuth.core.observation import OutOfRange

# They leave the rows of a table where they are.
KEEPING = ("convert_element_type", "name", "copy", "stop_gradient", "mul", "div", "neg")
# What stands for a table where a class is looked up.
ANSWERS = "the output of the model"
# The two are compiled together, and need not be summed in the same order.
ROUNDING = 1e-5
# Batches on which it is tried whether a place that is not there matters.
TRIED = 2


@dataclass(frozen=True)
class Lookup:
    """Rows of a weight, chosen by what the batch holds."""

    at: int  # the entry
    table: str
    indices: int  # slot
    # Of each column of the indices: entries along the axis that it counts, and the last place from which a slice still fits.
    limits: tuple[tuple[int, int], ...]
    kind: str = "embedding"


def lookups(tape: Tape, weights: dict[int, str], data: Iterable[int]) -> list[Lookup]:
    """`weights`: slots and their paths; `data`: slots that hold the batch."""
    tables, fed, learned = dict(weights), set(data), set(weights)
    found: list[Lookup] = []
    for at, entry in enumerate(tape.entries):
        taken = list(tape.sources(entry))
        if entry.name == "gather" and isinstance(entry.inputs[1], int) and entry.inputs[1] in fed:
            operand = entry.inputs[0]
            path = tables.get(operand) if isinstance(operand, int) else None
            if path is not None and not _is_meant(entry):
                found.append(Lookup(at, path, entry.inputs[1], _limits(tape, entry)))
            elif operand in learned and operand in fed and not _is_meant(entry) and _picks_one(tape, entry):
                found.append(Lookup(at, ANSWERS, entry.inputs[1], _limits(tape, entry), "class"))
        own = [slot for slot in taken if slot in tables]
        if len(own) == 1 and entry.name in KEEPING and tape.shapes[entry.outputs[0]] == tape.shapes[own[0]]:
            tables[entry.outputs[0]] = tables[own[0]]
        # Answers that meet weights again are no answers yet, and what was chosen of them no class.
        if any(slot in learned and slot not in fed for slot in taken) and any(slot in fed for slot in taken):
            found = [lookup for lookup in found if lookup.kind != "class"]
        for known in (fed, learned):
            if any(slot in known for slot in taken):
                known.update(entry.outputs)
    return found


def _picks_one(tape: Tape, entry: Entry) -> bool:
    """Of each row of the answers a single number, along their last axis."""
    numbers, sizes = entry.equation.params["dimension_numbers"], entry.equation.params["slice_sizes"]
    assert isinstance(entry.inputs[0], int)
    last = len(tape.shapes[entry.inputs[0]]) - 1
    return last in numbers.start_index_map and all(size == 1 for size in sizes)


def _is_meant(entry: Entry) -> bool:
    """Whoever says what is to be done outside the table has thought of it."""
    text = entry.location.text if entry.location is not None else ""
    fill = entry.equation.params.get("fill_value")
    chosen = fill is not None and not np.isnan(fill)
    clipped = str(entry.equation.params["mode"]).endswith("CLIP") and entry.called in ("take", "get", "take_along_axis")
    return chosen or clipped or "mode=" in text


def _limits(tape: Tape, entry: Entry) -> tuple[tuple[int, int], ...]:
    numbers, sizes = entry.equation.params["dimension_numbers"], entry.equation.params["slice_sizes"]
    assert isinstance(entry.inputs[0], int)
    shape = tape.shapes[entry.inputs[0]]
    return tuple((shape[axis], shape[axis] - sizes[axis]) for axis in numbers.start_index_map)


class Bounds:
    """Of one traced function whose first result is the loss."""

    def __init__(self, tape: Tape, weights: dict[int, str], data: Iterable[int], jit: Callable[..., Any] = jax.jit) -> None:
        self._tape, self._jit = tape, jit
        self._found = lookups(tape, weights, data)

    def look(self, batches: Sequence[list[Any]]) -> Iterator[OutOfRange]:
        """`batches`: of each, everything that the function is given."""
        if not self._found:
            return
        asks = self._jit(self._indices)
        asked = [asks(given) for given in batches]
        for number, lookup in enumerate(self._found):
            columns = [np.asarray(one[number]).reshape(-1, len(lookup.limits)) for one in asked]
            outside = [_outside(c, lookup) for c in columns]
            tried = [given for given, wrong in zip(batches, outside, strict=True) if wrong.any()][:TRIED]
            matters = self._jit(functools.partial(self._matters, lookup))
            if any(bool(matters(given)) for given in tried):
                yield self._told(lookup, np.concatenate(columns), np.concatenate(outside))

    def _indices(self, given: list[Any]) -> list[Any]:
        values = self._tape.evaluate(given)
        return [values[lookup.indices] for lookup in self._found]

    def _matters(self, lookup: Lookup, given: list[Any]) -> Any:
        """Does the loss depend on what was read there? Padding may be any number, where a mask takes it out again."""
        one, other = (self._loss(lookup, given, moved=moved) for moved in (False, True))
        differ = ~(jnp.abs(one - other) <= ROUNDING * jnp.maximum(jnp.abs(one), jnp.abs(other)))
        return jnp.any(differ & (one != other) & ~(jnp.isnan(one) & jnp.isnan(other)))

    def _loss(self, lookup: Lookup, given: list[Any], *, moved: bool) -> Any:
        """As it is, or with something else in place of what is not there."""
        tape = self._tape
        values: list[Any] = [None] * len(tape.shapes)
        for slot, value in zip(tape.inputs, given, strict=True):
            values[slot] = value
        for at, entry in enumerate(tape.entries):
            made = run(entry, [read(values, atom) for atom in entry.inputs])
            if moved and at == lookup.at:
                outside = _spread(_outside(values[lookup.indices], lookup).any(-1), entry, made[0])
                made = [jnp.where(outside, jnp.nan_to_num(made[0]) + 1, made[0])]
            for slot, value in zip(entry.outputs, made, strict=True):
                values[slot] = value
        return jnp.asarray(read(values, tape.outputs[0]))

    def _told(self, lookup: Lookup, columns: np.ndarray, outside: np.ndarray) -> OutOfRange:
        wrong = next(n for n in range(columns.shape[1]) if outside[:, n].any())
        (size, _), ids = lookup.limits[wrong], columns[:, wrong]
        line = self._tape.entries[lookup.at].location
        low = int(ids.min())
        if lookup.kind == "class":
            counted = (size, low if low >= 0 else low - size, int(ids.max()), int(outside[:, wrong].sum()), len(ids))
            return OutOfRange("class", ANSWERS, *counted[:3], outside=counted[3], asked=counted[4], location=line)
        return OutOfRange(
            "embedding",
            lookup.table,
            size,
            low if low >= 0 else low - size,  # JAX has counted it from the end already
            int(ids.max()),
            outside=int(outside[:, wrong].sum()),
            asked=len(ids),
            location=written_at(lookup.table) or line,
            raised=line,
        )


def _outside(indices: Any, lookup: Lookup) -> Any:
    last = np.array([last for _, last in lookup.limits])
    return (indices < 0) | (indices > last)


def _spread(outside: Any, entry: Entry, made: Any) -> Any:
    """Over all that one place of the table gives."""
    across = entry.equation.params["dimension_numbers"].offset_dims
    return jax.lax.broadcast_in_dim(outside, made.shape, [axis for axis in range(made.ndim) if axis not in across])
