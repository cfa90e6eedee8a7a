"""Batches that passed by, put together to a data set: each sample once, in the order of its data set where that is known."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.contract.kept import Passed
from sleuth.core.reading.batch_facts import numbers
from sleuth.core.runtime.tree import leaves, map_arrays, taken
from sleuth.probes.fingerprints.fingerprint import fingerprints


@dataclass(frozen=True)
class Gathered:
    """`arrays`: one row a sample; None where the batches do not fit together."""

    passed: list[Passed]  # batches of one form, in the order of their steps
    prints: list[np.ndarray]  # of the samples by their inputs, a batch each; empty where there is none a sample
    arrays: Any = None
    form: "Form | None" = None
    positioned: bool = False
    samples: int = 0  # that `arrays` hold

    @property
    def all_prints(self) -> np.ndarray:
        return np.concatenate(self.prints) if self.prints else np.array([], dtype=np.uint64)


@dataclass(frozen=True)
class Form:
    """How a flat row of arrays becomes inputs and target again."""

    inputs: Any  # with places instead of arrays
    target: Any
    count: int  # of the places

    def __call__(self, raw: Any) -> tuple[Any, Any]:
        arrays = raw if isinstance(raw, tuple) else (raw,)

        def filled(tree: Any) -> Any:
            return map_arrays(tree, lambda place: arrays[place.number], lambda thing: isinstance(thing, Place))

        # Validation may bring no targets where training does.
        return filled(self.inputs), filled(self.target) if self.count <= len(arrays) else None


@dataclass(frozen=True)
class Place:
    number: int


def gather(batches: Sequence[Passed], adapter: Adapter) -> Gathered:
    passed = _of_one_form(batches, adapter)
    prints = [_prints(p, adapter) for p in passed]
    form = _form(passed[0], adapter)
    flat = [_flat(p, adapter) for p in passed]
    if form is None or not _fit_together(flat) or (form.target is not None and _counts_samples(flat, adapter)):
        return Gathered(passed, prints)
    arrays = [adapter.like(np.concatenate([adapter.values(row[i]) for row in flat]), flat[0][i]) for i in range(len(flat[0]))]
    known = [p.positions for p in passed if p.positions is not None]
    positioned = len(known) == len(passed) and sum(map(len, known)) == len(arrays[0])
    names = np.concatenate(known if positioned else prints)
    _, first = np.unique(names if len(names) == len(arrays[0]) else np.arange(len(arrays[0])), return_index=True)
    rows = first if positioned else np.sort(first)
    chosen = tuple(taken(a, rows) for a in arrays)
    return Gathered(passed, prints, chosen if len(chosen) > 1 else chosen[0], form, positioned, len(rows))


def _of_one_form(batches: Sequence[Passed], adapter: Adapter) -> list[Passed]:
    """By their steps. A target may be missing here and there, or a model be given something else now and then: most count."""
    forms = [tuple(path for path, _ in leaves((p.parts.inputs, p.parts.target), adapter.is_array)) for p in batches]
    usual = Counter(forms).most_common(1)[0][0]
    return sorted((p for p, form in zip(batches, forms, strict=True) if form == usual), key=lambda p: p.step)


def _prints(passed: Passed, adapter: Adapter) -> np.ndarray:
    values = [n.values for n in numbers(passed.parts.inputs, adapter) if n.values.ndim]
    if not values or len({len(v) for v in values}) > 1:
        return np.array([], dtype=np.uint64)
    return fingerprints(values)[0]


def _flat(passed: Passed, adapter: Adapter) -> list[Any]:
    return [a for _, a in leaves((passed.parts.inputs, passed.parts.target), adapter.is_array)]


def _form(passed: Passed, adapter: Adapter) -> Form | None:
    count = 0

    def number(_: Any) -> Place:
        nonlocal count
        count += 1
        return Place(count - 1)

    inputs = map_arrays(passed.parts.inputs, number, adapter.is_array)
    if not count:
        return None
    target = map_arrays(passed.parts.target, number, adapter.is_array)
    return Form(inputs, target, count)


def _counts_samples(flat: list[list[Any]], adapter: Adapter) -> bool:
    """Is each sample's target its place in the batch, as where pairs are told from the rest of their batch? Then a batch is what
    it is only as a whole."""
    targets = [adapter.values(row[-1]) for row in flat]
    return all(len(t) > 1 and t.shape == (len(t),) and np.array_equal(t, np.arange(len(t))) for t in targets)


def _fit_together(flat: list[list[Any]]) -> bool:
    first = flat[0]
    for row in flat:
        if len({a.shape[0] if len(a.shape) else 0 for a in row}) != 1:
            return False
        if any(a.shape[1:] != b.shape[1:] or a.dtype != b.dtype for a, b in zip(row, first, strict=True)):
            return False
    return bool(first) and len(first[0].shape) > 0
