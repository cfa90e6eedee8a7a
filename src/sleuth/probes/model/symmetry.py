"""Whether units that start equal would ever become unequal: a few steps of plain descent tell."""

from collections.abc import Mapping

import numpy as np

from sleuth.core.contract.adapter import Adapter, Bench
from sleuth.probes.lab.probe import Lab, OutOfTime

# Where several matrices start at zero on purpose (Fixup, adaLN-zero), the gradient arrives one matrix further at each step.
STEPS = 6
# Each step moves a matrix by this share of its size: enough to tell rows apart, too little to break anything.
STEP_SHARE = 0.05
SMALLEST_SIZE = 0.01
# Equal units get equal gradients up to the order of summation.
ROUNDING = 1e-4
HALF_ROUNDING = 2e-2
# The same sum over equal numbers may differ this much, relatively, where blocks end.
SUMMATION = 1e-12
# A gradient that cancels out leaves its rounding behind, some 1e-16 of the others; grown to a whole step it would tell equal
# units apart. In single precision that cannot be kept from a gradient that is truly small.
CANCELLED = 1e-12
# Beyond this many units the rest would tell nothing new.
MOST_ROWS = 4096


def rows_of(values: np.ndarray, axis: int) -> np.ndarray:
    first = np.moveaxis(values, axis, 0)[:MOST_ROWS]
    return first.reshape(len(first), -1).astype(np.float64)


def equal_rows(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Which rows equal another one: neighbours along one random direction that also agree along a second."""
    directions = np.random.default_rng(0).normal(size=(rows.shape[1], 2))
    along = rows @ directions
    order = np.argsort(along[:, 0], kind="stable")
    tolerance = max(tolerance, SUMMATION * float(np.abs(rows).max(initial=0.0))) * np.sqrt(rows.shape[1])
    same = (np.abs(np.diff(along[order], axis=0)) <= tolerance).all(axis=1)
    equal = np.zeros(len(rows), dtype=bool)
    equal[order[1:][same]] = True
    equal[order[:-1][same]] = True
    return equal


def still_equal(lab: Lab, suspects: Mapping[str, tuple[int, ...]]) -> dict[str, int | None]:
    """Rows that were equal and still are after the steps, without dropout's dice; `suspects` maps paths to what may be the axis
    of the units.

    Not by the user's optimiser: a rate of zero or a warm-up must not look like symmetry.
    """
    snapshot = lab.bench.snapshot()
    try:
        return _walk(lab, lab.bench.double(), suspects, CANCELLED)
    except OutOfTime:
        raise
    except Exception:  # this model does not compute in float64
        lab.bench.restore(snapshot)
        return _walk(lab, lab.bench, suspects, 0.0)
    finally:
        lab.bench.restore(snapshot)


def _walk(lab: Lab, bench: Bench, suspects: Mapping[str, tuple[int, ...]], cancelled: float) -> dict[str, int | None]:
    adapter = lab.adapter
    before = {path: adapter.values(bench.parameter(path)).copy() for path in suspects}
    reached: set[str] = set()
    bench.set_training(False)
    for step in range(STEPS):
        lab.tick()
        by_path = bench.gradients(lab.train.batches[step % len(lab.train.batches)]).by_path
        gradients = {path: adapter.values(g).astype(np.float64) for path, g in by_path.items() if g is not None}
        reached |= suspects.keys() & gradients.keys()
        largest = max((_size(g) for g in gradients.values()), default=0.0)
        for path, gradient in gradients.items():
            if _size(gradient) > cancelled * largest:
                _descend(adapter, bench, path, gradient)
    # What the loss does not reach is the business of disconnected-parameters.
    return {
        path: max(_still(lab, bench, path, before[path], axis) for axis in axes) if path in reached else 0
        for path, axes in suspects.items()
    }


def _size(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def _descend(adapter: Adapter, bench: Bench, path: str, gradient: np.ndarray) -> None:
    size = _size(gradient)
    if size > 0 and np.isfinite(size):
        values = adapter.values(bench.parameter(path)).astype(np.float64)
        bench.write(path, values - STEP_SHARE * max(_size(values), SMALLEST_SIZE) * gradient / size)


def _still(lab: Lab, bench: Bench, path: str, before: np.ndarray, axis: int) -> int:
    after = lab.adapter.values(bench.parameter(path))
    moved = _size(after.astype(np.float64) - before)
    half = lab.adapter.dtype(bench.parameter(path)) in ("float16", "bfloat16")
    first, last = rows_of(before, axis), rows_of(after, axis)
    both = equal_rows(first, 0.0) & equal_rows(last, (HALF_ROUNDING if half else ROUNDING) * moved)
    if moved > 0:  # a table of positions, say: rows that no sample used stay as they were, and that is no symmetry
        both &= (first != last).any(axis=1)
    return int(both.sum())
