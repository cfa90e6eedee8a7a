"""Looking at every value of a traced function: which is not finite, and which operation is to blame."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters.jax.arrays import is_array, to_numpy
from sleuth.adapters.jax.loops import rounds
from sleuth.adapters.jax.tape import Entry, Tape

# Operations that write an Inf on purpose, or only hand it on: a mask, a start for a maximum.
FILLS = {
    "select_n", "broadcast_in_dim", "convert_element_type", "reshape", "transpose", "concatenate", "pad", "slice", "copy",
    "dynamic_update_slice", "scatter", "squeeze", "expand_dims", "full",
}  # fmt: skip
# What a user calls it → the word that the checks know.
WORDS = {
    "true_divide": "div", "truediv": "div", "divide": "div", "power": "pow", "float_power": "pow", "multiply": "mul",
    "subtract": "sub", "dot_general": "matmul", "dot": "matmul", "logistic": "sigmoid", "reduce_sum": "sum", "integer_pow": "pow",
    "arccos": "acos", "arcsin": "asin",
}  # fmt: skip


@dataclass(frozen=True)
class Bad:
    """A value that is not finite. `entry` is to blame; None: a mask, or it came in like that."""

    nans: int
    infs: int
    entry: Entry | None
    ranges: tuple[tuple[float, float], ...] = ()
    dtype: str = ""


class Looking:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.bad: dict[int, Bad] = {}
        self.makers: dict[int, Entry] = {}

    def given(self, values: list[Any]) -> None:
        for slot, value in zip(self.tape.inputs, values, strict=True):
            found = _look(value, None)
            if found is not None:
                self.bad[slot] = found

    def look(self, entry: Entry, taken: list[Any], made: list[Any]) -> None:
        before = [self.bad[s] for s in self.tape.sources(entry) if s in self.bad]
        masks = [_look(v, None) for a, v in zip(entry.inputs, taken, strict=True) if not isinstance(a, int)]
        before += [mask for mask in masks if mask is not None]
        for slot, value in zip(entry.outputs, made, strict=True):
            self.makers[slot] = entry
            found = _blame(_look(value, entry), before, entry, taken)
            if found is not None:
                inner = _inside(entry, taken) if found.entry is entry else None
                self.bad[slot] = inner or found

    def guilty(self, slots: list[int]) -> Bad | None:
        return next((b for s in slots if (b := self.bad.get(s)) is not None and b.entry is not None), None)

    def behind(self, entry: Entry) -> tuple[str, ...]:
        """What made its first input, the last one first."""
        names: list[str] = []
        slot = next(self.tape.sources(entry), None)
        while slot is not None and slot in self.makers and len(names) < 4:
            made = self.makers[slot]
            word = made.function or plain(made.called or made.name)
            if made.name not in FILLS and (not names or names[-1] != word):
                names.append(word)
            slot = next(self.tape.sources(made), None)
        return tuple(names)


def plain(name: str) -> str:
    return WORDS.get(name, name)


def _look(value: Any, entry: Entry | None) -> Bad | None:
    if not is_array(value) and not isinstance(value, np.generic | float):
        return None
    values = to_numpy(value)
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return None
    return Bad(int(np.isnan(values).sum()), int(np.isinf(values).sum()), entry, dtype=str(getattr(value, "dtype", "")))


def _inside(entry: Entry, taken: list[Any]) -> Bad | None:
    """Of a loop: the operation of its body that broke first."""
    for body, given in rounds(entry, taken):
        looking = Looking(body)
        looking.given(given)
        body.evaluate(given, looking.look)
        found = looking.guilty([slot for slot in body.outputs if isinstance(slot, int)])
        if found is not None:
            return found
    return None


def _blame(found: Bad | None, before: list[Bad], entry: Entry, taken: list[Any]) -> Bad | None:
    """NaN goes back to the NaN it was made of, an Inf to the Inf; one that a mask wrote is innocent until it makes NaN."""
    if found is None:
        return None
    nans = [b for b in before if b.nans]
    infs = [b for b in before if b.infs]
    source = nans[0] if found.nans and nans else next((b for b in infs if b.entry is not None), None)
    if source is not None:
        return Bad(found.nans, found.infs, source.entry, source.ranges, source.dtype)
    if (infs and not found.nans) or entry.name in FILLS:
        return Bad(found.nans, found.infs, None, dtype=found.dtype)
    return Bad(found.nans, found.infs, entry, tuple(_range(v) for v in taken), found.dtype)


def _range(value: Any) -> tuple[float, float]:
    if not is_array(value) and not isinstance(value, np.generic | float | int):
        return 0.0, 0.0
    values = np.asarray(to_numpy(value))
    values = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return (float(values.min()), float(values.max())) if values.size and values.dtype.kind in "fiub" else (0.0, 0.0)
