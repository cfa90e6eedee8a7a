"""How far two arrays that should be the same lie apart, and what rounding explains of it."""

import numpy as np

from sleuth.comparing.heard import Value

# So many rounding errors are explained by any order of sums; with float64 beside it a side's own noise is measured as well.
ROUNDINGS = 8.0
NOISES = 4.0
TINY = 1e-300


def apart(first: np.ndarray, other: np.ndarray, floor: float = 0.0) -> float:
    """Root mean square of the difference, relative to the larger of the two; inf where NaN or Inf stand in one alone."""
    a, b = first.astype(np.float64), other.astype(np.float64)
    broken = ~np.isfinite(a) | ~np.isfinite(b)
    if broken.any():
        if not np.array_equal(a[broken], b[broken], equal_nan=True):
            return float("inf")
        a, b = np.where(broken, 0, a), np.where(broken, 0, b)
    if not a.size:
        return 0.0
    scale = max(rms(a), rms(b), floor, TINY)
    return rms(a - b) / scale


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def values_apart(first: Value, other: Value) -> tuple[float, str]:
    """(distance, remark). Values in another order, as behind a flatten, are the same values."""
    if first.values is None or other.values is None:
        return rows_apart(row_of(first), row_of(other)), "by statistics"
    a, b = first.turned, other.turned
    if a.shape != b.shape and a.size == b.size and _squeezed(a) == _squeezed(b):
        b = b.reshape(a.shape)
    if a.shape != b.shape:
        return apart(np.sort(a, axis=None), np.sort(b, axis=None)), "other shape"
    found = apart(a, b)
    if found > 1e-3 and a.ndim == 2 and apart(np.sort(a, axis=1), np.sort(b, axis=1)) < 1e-5:
        return apart(np.sort(a, axis=1), np.sort(b, axis=1)), "in another order"
    return found, ""


def _squeezed(values: np.ndarray) -> tuple[int, ...]:
    return tuple(n for n in values.shape if n != 1)


def row_of(value: Value) -> np.ndarray:
    if value.row is not None:
        return value.row
    assert value.values is not None
    x = value.values.astype(np.float64)
    finite = x[np.isfinite(x)]
    if not finite.size:
        return np.array([x.size, 0, 0, 0, 0, 0, 0, np.isnan(x).sum(), np.isinf(x).sum()], np.float64)
    mean = finite.mean()
    facts = (x.size, mean, np.square(finite - mean).sum(), finite.min(), finite.max(), np.abs(finite).sum(), (x == 0).sum())
    return np.array([*facts, np.isnan(x).sum(), np.isinf(x).sum()], np.float64)


def rows_apart(a: np.ndarray, b: np.ndarray) -> float:
    """Mean, spread, ends and size, in units of the values' own size."""
    if a[0] != b[0] or (a[7:9] != b[7:9]).any():
        return float("inf")
    size = max(np.sqrt(a[1] ** 2 + a[2] / a[0]), np.sqrt(b[1] ** 2 + b[2] / b[0]), TINY)
    spreads = abs(np.sqrt(a[2] / a[0]) - np.sqrt(b[2] / b[0]))
    gaps = (abs(a[1] - b[1]), spreads, abs(a[3] - b[3]), abs(a[4] - b[4]), abs(a[5] - b[5]) / a[0])
    return float(max(gaps) / size)
