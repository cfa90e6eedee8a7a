"""Batches that passed by, put together to a data set: each sample once, in the order of its data set where that is known."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.adapter import Adapter
from sleuth.core.batch_facts import numbers
from sleuth.core.kept import Group, Kept, Passed
from sleuth.core.tree import leaves, map_arrays
from sleuth.probes.fingerprint import fingerprints

# Validation data of which so many were met in training, against what training data itself would show, is training data that
# somebody measures on.
TRAINING_ITSELF = 0.9


@dataclass(frozen=True)
class Gathered:
    """`arrays`: one row a sample; None where the batches do not fit together."""

    batches: list[Any]  # (inputs, target) as they came
    arrays: Any = None
    form: "Form | None" = None
    prints: np.ndarray = field(default_factory=lambda: np.array([], dtype=np.uint64))  # of the samples, by their inputs
    positioned: bool = False

    def __len__(self) -> int:
        return len(self.prints)


@dataclass(frozen=True)
class Validation:
    gathered: Gathered
    of_its_own: bool


@dataclass(frozen=True)
class Form:
    """How a flat row of arrays becomes inputs and target again."""

    inputs: Any  # with numbers in the place of arrays
    target: int | None

    def __call__(self, raw: Any) -> tuple[Any, Any]:
        arrays = raw if isinstance(raw, tuple) else (raw,)
        inputs = map_arrays(self.inputs, lambda place: arrays[place.number], lambda thing: isinstance(thing, Place))
        # Validation may bring no targets where training does.
        return inputs, None if self.target is None or self.target >= len(arrays) else arrays[self.target]


@dataclass(frozen=True)
class Place:
    number: int


def gather(batches: Sequence[Passed], adapter: Adapter) -> Gathered:
    raws = [p.parts.raw for p in batches]
    form = _form(batches[0], adapter)
    flat = [[a for _, a in leaves((p.parts.inputs, p.parts.target), adapter.is_array)] for p in batches]
    if form is None or not _fit_together(flat):
        return Gathered(raws)
    arrays = [adapter.like(np.concatenate([adapter.values(row[i]) for row in flat]), flat[0][i]) for i in range(len(flat[0]))]
    inputs = len(arrays) - (form.target is not None)
    values = [n.values for a in arrays[:inputs] for n in numbers(a, adapter)]
    prints, _ = fingerprints(values) if values else (np.array([], dtype=np.uint64), None)
    positions = [p.positions for p in batches]
    known = [p for p in positions if p is not None]
    positioned = len(known) == len(positions) and sum(map(len, known)) == len(arrays[0])
    _, first = np.unique(np.concatenate(known) if positioned else prints, return_index=True)
    rows = first if positioned else np.sort(first)
    chosen = tuple(a[rows] for a in arrays)
    return Gathered(raws, chosen if len(chosen) > 1 else chosen[0], form, prints[rows], positioned)


def _form(passed: Passed, adapter: Adapter) -> Form | None:
    count = 0

    def number(_: Any) -> Place:
        nonlocal count
        count += 1
        return Place(count - 1)

    inputs = map_arrays(passed.parts.inputs, number, adapter.is_array)
    if not count:
        return None
    return Form(inputs, None if passed.parts.target is None else count)


def _fit_together(flat: list[list[Any]]) -> bool:
    first = flat[0]
    for row in flat:
        if len(row) != len(first) or len({a.shape[0] if len(a.shape) else 0 for a in row}) != 1:
            return False
        if any(a.shape[1:] != b.shape[1:] or a.dtype != b.dtype for a, b in zip(row, first, strict=True)):
            return False
    return bool(first) and len(first[0].shape) > 0


def validation_of(kept: Kept, train: Gathered, adapter: Adapter) -> Validation | None:
    """The source that was looked at most, without those that are the training data itself."""
    best: Validation | None = None
    for group in sorted(kept.validation, key=lambda g: -len(g.batches)):
        found = gather(group.batches, adapter)
        if not len(found) or not len(train) or not _is_training(group, found, train, kept.available):
            best = best or Validation(found, group.of_its_own)
    return best


def _is_training(group: Group, found: Gathered, train: Gathered, available: int | None) -> bool:
    """As many of these samples were met in training as if they were the training samples themselves."""
    met = float(np.isin(found.prints, train.prints).mean())
    there = max(group.samples, len(found), 1)
    return met >= TRAINING_ITSELF * min(1.0, len(train) / max(there, min(available or there, there)))
