"""Reads validation a second time: does it bring the same samples, and are they the same?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Rows
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation, Split
from sleuth.core.reading.batch_facts import Contents, Named, contents
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.core.trial import SecondPass
from sleuth.probes.data.reading import note
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.samples import data_rows
from sleuth.probes.lab.sources import open_source

# Samples that are read twice at their own position: an augmentation that touches one in twenty shows in 999 of 1000 tries.
POSITIONS = 144
CHUNK = 16
# Validation sets up to this size are read once more from end to end.
MOST_SAMPLES = 50_000
# Of a larger one, or one without an end, so many batches are compared in their order.
FIRST_BATCHES = 16


@dataclass(frozen=True)
class Reread:
    """Samples read twice at their own position: how many came out otherwise, in inputs or targets, and in targets alone."""

    compared: int
    changed: int
    targets_changed: int
    example: int | None


@probe(title="Reading validation a second time", stage=Stage.DATA, rank=25, emits=(SecondPass,), share=0.1)
def second_pass(lab: Lab) -> Iterator[Observation]:
    first = lab.validation
    if first is None:
        raise Unsupported("no validation data was given")
    if not first.exact:
        raise Unsupported("a batch holds no array with one entry a sample, so samples cannot be compared")
    rows = data_rows(lab.subject.validation, lab.adapter)
    total = None if rows is None else rows.count
    reread = _reread(lab, rows) if rows is not None else None
    if reread is None:
        a, b, lost, complete = _require(_passes(lab, first), first)
        design = _design(lab, first, targets_changed=True) if lost else None
        yield SecondPass(0, 0, 0, passes=(a, b), lost=lost, complete=complete, by_design=design)
        return
    trial = SecondPass(reread.compared, reread.changed, reread.targets_changed, reread.example, total=total)
    if reread.changed:
        design = _design(lab, first, reread.targets_changed > 0)
        yield replace(trial, complete=reread.compared == total, by_design=design)
    elif (passes := _passes(lab, first)) is not None:
        yield replace(trial, passes=passes[:2], lost=passes[2], complete=passes[3])
    else:
        yield replace(trial, complete=False)


def _reread(lab: Lab, rows: Rows) -> Reread | None:
    """None where the data set cannot be read this way."""
    positions = np.unique(np.linspace(0, rows.count - 1, min(POSITIONS, rows.count)).astype(np.int64))
    compared = changed = targets = 0
    example = None
    for start in range(0, len(positions), CHUNK):
        some = positions[start : start + CHUNK]
        try:
            one, two = (contents(take_apart(rows.take(some), lab.subject.split), lab.adapter) for _ in range(2))
        except Exception:  # a data set may read only inside its loader's workers
            return None
        differ_targets = _differ(one.targets, two.targets, len(some))
        differ = _differ(one.inputs, two.inputs, len(some)) | differ_targets
        compared += len(some)
        changed += int(differ.sum())
        targets += int(differ_targets.sum())
        if example is None and differ.any():
            example = int(some[np.argmax(differ)])
        if lab.time_is_up():
            break
    return Reread(compared, changed, targets, example)


def _differ(one: list[Named], two: list[Named], count: int) -> np.ndarray:
    """Per sample, whether it came out otherwise; where shapes differ, all did."""
    a, b = ([n.values for n in side if n.values.ndim and len(n.values) == count] for side in (one, two))
    if [v.shape for v in a] != [v.shape for v in b]:
        return np.ones(count, dtype=bool)
    if not a:
        return np.zeros(count, dtype=bool)
    (exact, rounded), (other, other_rounded) = fingerprints(a), fingerprints(b)
    return np.asarray((exact != other) & (rounded != other_rounded).all(axis=1))


def _design(lab: Lab, first: Readings, targets_changed: bool) -> str | None:
    """Where validation may be random on purpose, because what is drawn anew is the task itself."""
    batch = contents(first.batches[0], lab.adapter)
    if not batch.targets:
        return "no target stands beside the inputs, so random views or noise may be the task itself"
    arrays = [n.values for n in (*batch.inputs, *batch.targets)]
    if targets_changed and all(v.dtype.kind in "iu" and v.ndim == 2 for v in arrays):
        return "inputs and targets are both ids that are drawn anew, as masked words are"
    alike = len(batch.inputs) == len(batch.targets) and len({v.shape for v in arrays}) == 1
    if lab.subject.step is not None and targets_changed and alike:
        return "a batch is a pair of arrays of one shape that are both drawn anew, as two views of one picture are"
    return None


def _passes(lab: Lab, first: Readings) -> tuple[int, int, int, bool] | None:
    """(samples of the first pass, of the second, lost, complete); None where the two cannot be compared."""
    whole = first.complete and first.samples <= MOST_SAMPLES
    wanted = None if whole else min(FIRST_BATCHES, len(first.exact))
    second = Readings(Split.VALIDATION)
    shapes = {_shape(contents(parts, lab.adapter)) for parts in first.batches}
    for raw in islice(_open(lab), wanted):
        batch = contents(take_apart(raw, lab.subject.split), lab.adapter)
        shapes.add(_shape(batch))
        note(batch, second)
        if lab.time_is_up():
            whole = False
            break
    compared = first if whole else _beginning(first, len(second.exact))
    lost = _lost(compared, second)
    # Samples that are padded to the longest of their batch look different in other company, and two parts of a shuffled
    # set hold different samples by right.
    if lost and (not whole or len(shapes) > 1):
        return None
    return sum(map(len, compared.exact)), sum(map(len, second.exact)), lost, whole


def _require(passes: tuple[int, int, int, bool] | None, first: Readings) -> tuple[int, int, int, bool]:
    if passes is not None:
        return passes
    what = "batches are padded to different lengths" if first.complete else "only a part of validation was read"
    raise Unsupported(f"{what}, and it comes in another order each time, so two passes cannot be compared")


def _open(lab: Lab) -> Iterator[Any]:
    return iter(open_source(lab.subject.validation, lab.adapter, "validation").batches)


def _shape(batch: Contents) -> tuple[tuple[int, ...], ...]:
    return tuple(n.values.shape[1:] for n in batch.inputs)


def _beginning(readings: Readings, batches: int) -> Readings:
    return Readings(readings.split, exact=readings.exact[:batches], rounded=readings.rounded[:batches])


def _lost(one: Readings, two: Readings) -> int:
    """Samples of one pass that are not in the other: the larger of the two numbers."""
    if not two.exact:
        return sum(map(len, one.exact))
    a, b = (np.column_stack([np.concatenate(r.exact), np.concatenate(r.rounded)]) for r in (one, two))
    return max(int((~_found(a, b)).sum()), int((~_found(b, a)).sum()))


def _found(samples: np.ndarray, among: np.ndarray) -> np.ndarray:
    return np.asarray(np.logical_or.reduce([np.isin(samples[:, i], among[:, i]) for i in range(3)]))
