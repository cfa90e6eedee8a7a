"""The statistics in NumPy: the reference that every faster way must equal."""

from collections.abc import Iterator, Sequence
from math import ceil

import numpy as np

COLUMNS = ("count", "mean", "m2", "min", "max", "abs_sum", "zeros", "nans", "infs")

# Doubles of this many values fit into a second-level cache.
PIECE = 1 << 15
# Binary exponents from -128 to 127, eight to a bin.
BINS = 32
# The histogram looks at this many values of an array.
SAMPLED = 1024
# Sums of huge doubles overflow; Inf is counted and never stored.
LARGEST = float(np.finfo(np.float64).max)
# Values that are sampled side by side: they come with one look into memory.
RUN = 4
# Moves the sampled place within each stretch, so that the length of a row cannot resonate.
JITTER = 7919


def measure(arrays: Sequence[np.ndarray], table: np.ndarray) -> None:
    """Fills one row of statistics an array; see core.statistics for what the columns mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        for row, array in zip(table, arrays, strict=True):
            row[:] = _row(np.asarray(array))


def count_exponents(arrays: Sequence[np.ndarray], bins: np.ndarray) -> None:
    """Fills one row an array with the counts of the binary exponents of its finite values other than zero."""
    for row, array in zip(bins, arrays, strict=True):
        values = sample(np.asarray(array), SAMPLED)
        values = values[np.isfinite(values) & (values != 0)]
        _, exponents = np.frexp(values)
        row[:] = np.bincount(np.clip(exponents + 127, 0, 255) >> 3, minlength=BINS)


def keep(arrays: Sequence[np.ndarray], kept: np.ndarray, most: int) -> None:
    """Copies at most `most` values of each array into `kept`, one array after the other."""
    for array, part in zip(arrays, _parts(arrays, kept, most), strict=True):
        part[:] = sample(array, most)


def changes(arrays: Sequence[np.ndarray], kept: np.ndarray, most: int, table: np.ndarray) -> None:
    """Statistics of what each sampled value changed by since `keep`."""
    measure([sample(a, most) - part for a, part in zip(arrays, _parts(arrays, kept, most), strict=True)], table)


def _parts(arrays: Sequence[np.ndarray], kept: np.ndarray, most: int) -> Iterator[np.ndarray]:
    start = 0
    for array in arrays:
        size = sample_size(array.size, most)
        yield kept[start : start + size]
        start += size


def sample_size(count: int, most: int) -> int:
    every = _spacing(count, most)
    return ceil(ceil(count / RUN) / every) * RUN if every else count


def _spacing(count: int, most: int) -> int:
    """How many runs one stands for; 0: every value is taken."""
    return 0 if count <= max(most, RUN) else ceil(ceil(count / RUN) / max(most // RUN, 1))


def sample(array: np.ndarray, most: int) -> np.ndarray:
    """Evenly spaced runs of values as doubles; in memory order where the array is dense, else in the order of its axes."""
    flat = array.ravel(order="K" if _is_dense(array) else "C")
    every = _spacing(flat.size, most)
    if not every:
        return flat.astype(np.float64)
    run = np.arange(sample_size(flat.size, most) // RUN)
    starts = np.minimum((run * every + run * JITTER % every) * RUN, flat.size - RUN)
    return flat[(starts[:, None] + np.arange(RUN)).reshape(-1)].astype(np.float64)


def _is_dense(array: np.ndarray) -> bool:
    """Do its values lie side by side, in whatever order of axes?"""
    expected = array.itemsize
    for stride, length in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride != expected:
            return False
        expected *= length
    return True


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
    abs_sum = min(np.abs(wide).sum(), LARGEST)
    mean = wide.mean()
    if not np.isfinite(mean):
        mean = (wide / wide.size).sum()
    wide -= mean
    # Not a dot product: on pieces this small its threads cost more than they save.
    m2 = min(np.square(wide, out=wide).sum(), LARGEST)
    return np.array([count, mean, m2, low, high, abs_sum, zeros, nans, infs])


def _join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """core.statistics.merge for a single row: the kernel imports NumPy only, and runs this once a piece."""
    finite_a, finite_b = a[0] - a[7] - a[8], b[0] - b[7] - b[8]
    out = a + b
    if finite_a == 0 or finite_b == 0:
        out[1:5] = (b if finite_a == 0 else a)[1:5]
        return out
    share, delta = finite_b / (finite_a + finite_b), b[1] - a[1]
    out[1] = a[1] + delta * share if np.isfinite(delta) else a[1] * (1 - share) + b[1] * share
    out[2] = min(a[2] + b[2] + delta * delta * finite_a * share, LARGEST)
    out[3], out[4] = min(a[3], b[3]), max(a[4], b[4])
    out[5] = min(out[5], LARGEST)
    return out
