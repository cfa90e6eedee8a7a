"""The statistics in NumPy: the reference that every faster way must equal."""

from collections.abc import Sequence

import numpy as np

COLUMNS = ("count", "mean", "m2", "min", "max", "abs_sum", "zeros", "nans", "infs")


# Doubles of this many values fit into a second-level cache.
PIECE = 1 << 15


def measure(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One row of statistics an array; see core.statistics for what the columns mean."""
    table = np.zeros((len(arrays), len(COLUMNS)))
    for row, array in zip(table, arrays, strict=True):
        row[:] = _row(np.asarray(array))
    return table


def _row(array: np.ndarray) -> np.ndarray:
    """Large arrays go through in pieces that stay in the cache, each merged into what was there."""
    flat = array.reshape(-1)
    total = _piece(flat[:PIECE])
    for start in range(PIECE, flat.size, PIECE):
        total = _join(total, _piece(flat[start : start + PIECE]))
    return total


def _piece(flat: np.ndarray) -> np.ndarray:
    if flat.dtype == bool:
        flat = flat.astype(np.uint8)
    count, zeros = float(flat.size), float(flat.size - np.count_nonzero(flat))
    nans = infs = 0.0
    if flat.dtype.kind == "f":
        finite = np.isfinite(flat)
        if not finite.all():
            nans = float(np.count_nonzero(np.isnan(flat)))
            infs = count - float(np.count_nonzero(finite)) - nans
            flat = flat[finite]
    if flat.size == 0:
        return np.array([count, 0.0, 0.0, 0.0, 0.0, 0.0, zeros, nans, infs])
    wide = flat.astype(np.float64)
    low, high = wide.min(), wide.max()
    abs_sum = np.abs(wide).sum()
    mean = wide.mean()
    wide -= mean
    # Not a dot product: on pieces this small its threads cost more than they save.
    m2 = np.square(wide, out=wide).sum()
    return np.array([count, mean, m2, low, high, abs_sum, zeros, nans, infs])


def _join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """core.statistics.merge for a single row: the kernel imports NumPy only, and runs this once a piece."""
    finite_a, finite_b = a[0] - a[7] - a[8], b[0] - b[7] - b[8]
    out = a + b
    if finite_a == 0 or finite_b == 0:
        out[1:5] = (b if finite_a == 0 else a)[1:5]
        return out
    share, delta = finite_b / (finite_a + finite_b), b[1] - a[1]
    out[1] = a[1] + delta * share
    out[2] = a[2] + b[2] + delta * delta * finite_a * share
    out[3], out[4] = min(a[3], b[3]), max(a[4], b[4])
    return out
