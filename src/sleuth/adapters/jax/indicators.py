"""Labels that no column of a one-hot code stands for: the row is empty, the sample counts for nothing, and nobody says so."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sleuth.adapters.jax.tape import Entry, Tape
from sleuth.core.observation import OutOfRange

# A class that was left out is about as frequent as others; whoever marks samples that are to be skipped marks many, or few.
MOST_OFTEN = 2.0
CODE = "the one-hot code"


@dataclass(frozen=True)
class Indicator:
    """A comparison of labels with the numbers of columns."""

    entry: Entry
    labels: int  # slot
    columns: int  # how many
    single: bool  # one label a sample


def indicators(tape: Tape, weights: Iterable[int], data: Iterable[int]) -> list[Indicator]:
    """Those whose columns the answers of the model are set against."""
    learned, fed = set(weights), set(data)
    found: dict[int, Indicator] = {}  # by the slots that hold the code
    met = []
    for entry in tape.entries:
        taken = list(tape.sources(entry))
        codes = [slot for slot in taken if slot in found]
        others = [slot for slot in taken if slot not in found]
        if codes and any(slot in learned and slot in fed for slot in others):
            met.append(found[codes[0]])
        elif codes and not any(slot in learned for slot in others) and _keeps_columns(tape, entry, codes[0]):
            found.update(dict.fromkeys(entry.outputs, found[codes[0]]))
        own = _indicator(tape, entry, learned, fed)
        if own is not None:
            found[entry.outputs[0]] = own
        for known in (learned, fed):
            if any(slot in known for slot in taken):
                known.update(entry.outputs)
    return list({id(one): one for one in met}.values())


def _keeps_columns(tape: Tape, entry: Entry, code: int) -> bool:
    return bool(tape.shapes[entry.outputs[0]][-1:] == tape.shapes[code][-1:])


def _indicator(tape: Tape, entry: Entry, learned: set[int], fed: set[int]) -> Indicator | None:
    shape = tape.shapes[entry.outputs[0]]
    slots = [atom for atom in entry.inputs if isinstance(atom, int)]
    if entry.name != "eq" or len(shape) < 2 or shape[-1] < 2 or len(slots) != 2:
        return None
    labels = [slot for slot in slots if slot in fed and slot not in learned and tape.shapes[slot][-1:] == (1,)]
    numbers = [slot for slot in slots if slot not in fed and slot not in learned]
    if len(labels) != 1 or len(numbers) != 1 or not np.issubdtype(tape.dtypes[labels[0]], np.integer):
        return None
    return Indicator(entry, labels[0], shape[-1], len(shape) == 2)


def look(
    tape: Tape, found: Sequence[Indicator], batches: Sequence[list[Any]], jit: Callable[..., Any] = jax.jit
) -> Iterator[OutOfRange]:
    """`batches`: of each, everything that the function is given."""
    if not found:
        return

    def sides(given: list[Any]) -> list[tuple[Any, Any]]:
        values = tape.evaluate(given)
        return [(values[one.labels], values[one.entry.outputs[0]]) for one in found]

    asks = jit(sides)
    told = [asks(given) for given in batches]
    for number, one in enumerate(found):
        labels = np.concatenate([np.asarray(t[number][0]).ravel() for t in told])
        codes = np.concatenate([np.asarray(t[number][1]).reshape(-1, one.columns) for t in told])
        if len(labels) != len(codes) or not _counts_from_zero(labels, codes, one.columns):
            continue
        if _is_forgotten(labels, one):
            low, high = int(labels.min()), int(labels.max())
            outside = int(np.sum(labels >= one.columns))
            yield OutOfRange(
                "class", CODE, one.columns, low, high, outside=outside, asked=len(labels), location=one.entry.location
            )


def _counts_from_zero(labels: np.ndarray, codes: np.ndarray, columns: int) -> bool:
    return bool(np.array_equal(codes, labels[:, None] == np.arange(columns)))


def _is_forgotten(labels: np.ndarray, one: Indicator) -> bool:
    """Labels below zero, or far away, are how samples are left out on purpose."""
    values, counts = np.unique(labels, return_counts=True)
    beyond = values >= one.columns
    if not beyond.any() or values[0] < 0:
        return False
    if (values[0], values[-1]) == (1, one.columns):
        return True
    in_a_row = np.array_equal(values[beyond], np.arange(one.columns, one.columns + beyond.sum()))
    usual = counts[beyond].max() <= MOST_OFTEN * np.median(counts[~beyond]) if (~beyond).any() else False
    return bool(one.single and in_a_row and usual)
