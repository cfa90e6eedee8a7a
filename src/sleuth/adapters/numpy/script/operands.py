"""What an update was made of: arrays of the weight's shape on the right side of its statement, and a rate by its name."""

import re
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.learning_rate import RATES, is_number
from sleuth.adapters.numpy.script.network import GRADIENT, RATE, UPDATING
from sleuth.adapters.numpy.script.slots import Event, arrays_in
from sleuth.core.runtime.source.sites import Update

# Of the size of an update: what rounding leaves.
EXACT = 1e-5


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    return compile(text, "<sleuth>", "eval")


def asked(frame: FrameType, text: str) -> Any:
    """Of the user's variables as they are now; None where it cannot be told."""
    try:
        return eval(_compiled(text), frame.f_globals, frame.f_locals)
    except Exception:  # of names in a comprehension, or of an entry that is gone
        return None


def operands_of(update: Update, frame: FrameType) -> dict[str, Any]:
    return {text: value for text in update.operands if (value := asked(frame, text)) is not None}


def fitting(values: dict[str, Any], key: Any, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Copies of those of this shape; of lists and dicts the entry under the key of the weight, or under d… or grad_… of it."""
    found: dict[str, np.ndarray] = {}
    for text, value in values.items():
        entries = dict(arrays_in(value))
        for name in (None, key, f"d{key}", f"grad_{key}"):
            array = entries.get(name)
            if array is not None and array.shape == shape:
                found[text] = np.array(array)
                break
    return found


def rate_in(values: dict[str, Any]) -> float | None:
    """A number that is called a rate, or that an optimiser keeps whose method does the update."""
    rates = [float(v) for text, v in values.items() if RATE.search(text) and is_number(v)]
    if len(set(rates)) == 1:
        return rates[0]
    for text, value in values.items():
        if re.search(r"\.\w+$", text) and callable(value):
            held = getattr(value, "__self__", None)
            rate = next((r for name in RATES if is_number(r := getattr(held, name, None))), None)
            if rate is not None:
                return float(rate)
    return None


def true_gradient(event: Event) -> np.ndarray | None:
    """What the update steps against, where that is the gradient itself. None where only what an optimiser made of it is seen."""
    update, remembered = event.slot.update, event.slot.remembered
    operands = {text: array for text, array in event.operands.items() if text not in remembered}
    with np.errstate(all="ignore"):
        moved = event.after.astype(np.float64) - event.before
        size = float(np.abs(moved).max(initial=0.0))
        for text, array in operands.items():
            square = float((array * array).sum())
            rate = -float((moved * array).sum()) / square if square > 0 else 0.0
            exact = size > 0 and rate != 0 and float(np.abs(moved + rate * array).max(initial=0.0)) <= EXACT * size
            if exact and (not remembered or GRADIENT.search(text)):
                return array * np.sign(rate)
        given = list(operands.values()) if UPDATING.search(update.value) else []
        named = [array for text, array in operands.items() if GRADIENT.search(_bare(text))]
        for found in (given, named):
            if len(found) == 1:
                against = bool(np.all(moved * found[0] >= 0)) and bool(moved.any())
                return -found[0] if against else found[0]
        if event.operands or remembered or not event.rate or update.scaled or UPDATING.search(update.value):
            return None
        return -moved / event.rate


def _bare(text: str) -> str:
    return re.sub(r"\[.*$", "", text)


def measured(event: Event) -> tuple[np.ndarray | None, float | None]:
    """(the gradient that the update follows, the rate): from what the update has changed, where that is a multiple of something
    that its statement names."""
    with np.errstate(all="ignore"):
        moved = event.after.astype(np.float64) - event.before
        size = float(np.abs(moved).max(initial=0.0))
        for array in event.operands.values():
            square = float((array * array).sum())
            rate = -float((moved * array).sum()) / square if square > 0 else 0.0
            if size > 0 and rate != 0 and float(np.abs(moved + rate * array).max(initial=0.0)) <= EXACT * size:
                return (-moved / event.rate, event.rate) if event.rate else (array * np.sign(rate), abs(rate))
        own = true_gradient(event)
        if own is not None:
            return own, event.rate
        named = [array for text, array in event.operands.items() if GRADIENT.search(text)]
        if named:
            return named[-1], event.rate
        if event.rate and not event.operands and not event.slot.update.scaled:
            return -moved / event.rate, event.rate
    return None, event.rate
