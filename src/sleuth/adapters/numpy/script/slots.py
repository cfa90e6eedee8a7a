"""Weights of a script, told from everything else that it updates.

An update statement says what an array was before and what it is after. Where it finds again and again what it left the last time,
the array is carried from step to step: it is a weight, or something that an optimiser remembers. Activations and gradients are
made anew in every step, so that chain breaks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.runtime.source.sites import Update

# So many entries of an array tell whether it is the same.
COMPARED = 64
# A list of arrays is one network's, not a data set.
MOST_LEAVES = 256
# A network whose weights are single Python numbers is none of NumPy's.
MOST_NUMBERS = 16
# Links in a chain that make a weight, and breaks without one that make something else.
LINKS = 2
# Between two updates a weight may shrink by this factor, and so many entries of at least so many stay what they were.
DECAY = 0.5
MOSTLY, MANY = 0.75, 4
BREAKS = 4


@dataclass
class Slot:
    """One array that is carried on by one statement."""

    site: int
    update: Update
    key: Any  # which of several that the statement updates
    shape: tuple[int, ...]
    left: np.ndarray  # some entries, as the statement left them
    left_before: np.ndarray | None = None  # the time before
    links: int = 0
    breaks: int = 0
    order: int = 0
    name: str = ""
    duplicate: bool = False
    remembered: tuple[str, ...] = ()  # what an optimiser keeps from step to step: velocities, means
    passed: bool = False  # steps went by of which it is not known what they left

    @property
    def is_carried(self) -> bool:
        return self.links >= LINKS and self.links > self.breaks


@dataclass
class Event:
    """One array that a statement has updated, with copies of what it was and is."""

    slot: Slot
    before: np.ndarray
    after: np.ndarray
    operands: dict[str, np.ndarray] = field(default_factory=dict)  # arrays of its shape on the right side
    rate: float | None = None  # by its name


class SiteSlots:
    """The arrays that one statement updates."""

    def __init__(self, site: int, update: Update) -> None:
        self.site, self.update = site, update
        self.slots: list[Slot] = []
        self.misses = 0

    @property
    def is_hopeless(self) -> bool:
        if len(self.slots) > MOST_NUMBERS and not any(slot.shape for slot in self.slots):
            return True
        return (self.misses >= BREAKS or len(self.slots) >= MOST_LEAVES) and not any(slot.links for slot in self.slots)

    def met(self, key: Any, before: np.ndarray, after: np.ndarray) -> Slot:
        was, now = some_of(before), some_of(after)
        same = [s for s in self.slots if s.shape == before.shape]
        own = next((s for s in same if s.key == key), None)
        linked = own if own is not None and (own.passed or _equal(own.left, was)) else None
        # Many a number is 0.0: that two are equal says nothing.
        if linked is None and before.size > 1:
            linked = next((s for s in same if s.passed or _equal(s.left, was)), None)
        if linked is not None:
            linked.passed = False
            linked.links += 1
            linked.left_before, linked.left = linked.left, now
            return linked
        if own is not None:
            self.misses += 1
            own.breaks += 1
            own.left = now
            return own
        slot = Slot(self.site, self.update, key, before.shape, now)
        if len(self.slots) < MOST_LEAVES:
            self.slots.append(slot)
        return slot


def some_of(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return np.array(flat[:: max(1, flat.size // COMPARED)])


def _equal(left: np.ndarray, found: np.ndarray) -> bool:
    """Is it what was left, but for a decay (the same factor everywhere) or a few entries that were cut off at a bound?"""
    if left.shape != found.shape:
        return False
    same = (left == found) | (np.isnan(left) & np.isnan(found))
    if same.all():
        return True
    counts = (left != 0) | (found != 0)
    if counts.sum() >= MANY and same[counts].mean() >= MOSTLY:
        return True
    if not np.isfinite(left).all() or not np.isfinite(found).all() or counts.sum() < MANY:
        return False
    size = float(left @ left)
    factor = float(left @ found) / size if size > 0 else 0.0
    return DECAY <= factor <= 1 and bool(np.allclose(found, factor * left, rtol=1e-9, atol=0))


def arrays_in(thing: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """(key, array) of an array, or of a list or dict of arrays and numbers. Whole numbers are no weights."""
    if isinstance(thing, np.ndarray):
        if thing.dtype.kind == "f" and thing.size:
            yield None, thing
        return
    if isinstance(thing, float | np.floating):
        yield None, np.asarray(thing, dtype=np.float64)
        return
    entries = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list | tuple) else ()
    for i, (key, value) in enumerate(list(entries)):
        if i >= MOST_LEAVES:
            return
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            yield key, value
