"""Output and target, followed through the program of a loss on Keras' jax backend."""

from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np

from sleuth.adapters.jax.tape import Entry, Tape
from sleuth.adapters.keras.sides import Meeting

ELEMENTWISE = ("sub", "mul", "add", "div")
# Between a value and an axis that it was given: they make no new values.
CARRIERS = ("convert_element_type", "copy", "stop_gradient", "squeeze")


def meeting(compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
    def pure(output: Any, target: Any) -> Any:
        with keras.StatelessScope(collect_losses=True):
            return compute(output, target)

    tape = Tape(jax.make_jaxpr(pure)(output, target))
    sides: dict[int, set[str]] = {tape.inputs[0]: {"output"}, tape.inputs[1]: {"target"}}
    widened: dict[int, Entry] = {}  # by an axis of one
    counted = _counted(tape)
    for entry in tape.entries:
        taken = [atom for atom in entry.inputs if isinstance(atom, int)]
        found = set().union(*(sides.get(slot, set()) for slot in taken))
        if entry.name in ELEMENTWISE and counted.intersection(entry.outputs):
            met = _met(tape, entry, sides, widened)
            if met is not None:
                return met
        for slot in entry.outputs:
            sides[slot] = found
            if _gives_an_axis(tape, entry):
                widened[slot] = entry
            elif entry.name in CARRIERS and taken[0] in widened:
                widened[slot] = widened[taken[0]]
    return None


def _met(tape: Tape, entry: Entry, sides: dict[int, set[str]], widened: dict[int, Entry]) -> Meeting | None:
    pair = [atom for atom in entry.inputs if isinstance(atom, int)]
    by_side = {next(iter(sides[slot])): slot for slot in pair if len(sides.get(slot, ())) == 1}
    if len(pair) != 2 or set(by_side) != {"output", "target"}:
        return None
    # What lacks an axis is given one by JAX itself, in the very call where the two meet.
    by_jax = {slot for slot in pair if slot in widened and _same_call(widened[slot], entry)}
    one, other = (_given_to(tape, by_side[side], by_jax, widened) for side in ("output", "target"))
    both = tape.shapes[entry.outputs[0]]
    # Whoever gives both sides an axis for the other one wants every pair, as in a Chamfer distance.
    if np.prod(both) <= max(np.prod(one), np.prod(other)) or all(slot in widened and slot not in by_jax for slot in pair):
        return None
    return Meeting(one, other, both, entry.location)


def _same_call(one: Entry, other: Entry) -> bool:
    return (one.location, one.called) == (other.location, other.called)


def _given_to(tape: Tape, slot: int, by_jax: set[int], widened: dict[int, Entry]) -> tuple[int, ...]:
    before = widened[slot].inputs[0] if slot in by_jax else slot
    return tape.shapes[before if isinstance(before, int) else slot]


def _gives_an_axis(tape: Tape, entry: Entry) -> bool:
    if entry.name not in ("broadcast_in_dim", "reshape") or not isinstance(entry.inputs[0], int):
        return False
    before, after = tape.shapes[entry.inputs[0]], tape.shapes[entry.outputs[0]]
    return len(after) > len(before) and 1 in after


def _counted(tape: Tape) -> set[int]:
    """What the loss is made of: a metric beside it may compare as it likes."""
    found = {slot for slot in tape.outputs if isinstance(slot, int)}
    for entry in reversed(tape.entries):
        if found.intersection(entry.outputs):
            found.update(atom for atom in entry.inputs if isinstance(atom, int))
    return found
