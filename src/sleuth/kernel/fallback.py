"""The statistics in NumPy: the reference that every faster way must equal."""

from collections.abc import Sequence

import numpy as np

COLUMNS = ("count", "mean", "m2", "min", "max", "abs_sum", "zeros", "nans", "infs")


def measure(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One row of statistics an array; see core.statistics for what the columns mean."""
    table = np.zeros((len(arrays), len(COLUMNS)))
    for row, array in zip(table, arrays, strict=True):
        row[:] = _row(np.asarray(array))
    return table


def _row(array: np.ndarray) -> tuple[float, ...]:
    flat = array.reshape(-1)
    if flat.dtype == bool:
        flat = flat.astype(np.uint8)
    zeros = float(np.count_nonzero(flat == 0))
    nans = infs = 0.0
    count = float(flat.size)
    if flat.dtype.kind in "fc":
        finite = np.isfinite(flat)
        if not finite.all():
            nans = float(np.count_nonzero(np.isnan(flat)))
            infs = count - float(np.count_nonzero(finite)) - nans
            flat = flat[finite]
    if flat.size == 0:
        return (count, 0.0, 0.0, 0.0, 0.0, 0.0, zeros, nans, infs)
    wide = flat.astype(np.float64)
    mean = float(wide.mean())
    m2 = float(np.square(wide - mean).sum())
    return (count, mean, m2, float(wide.min()), float(wide.max()), float(np.abs(wide).sum()), zeros, nans, infs)
