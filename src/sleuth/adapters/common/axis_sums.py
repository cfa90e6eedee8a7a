"""Sums along each axis: what tells probabilities and their logarithms from scores."""

import numpy as np

# Beyond this the sums would cost more than the step.
LARGE = 20_000_000


def axis_sums(array: np.ndarray) -> tuple[tuple[float, float], ...]:
    """(least, largest) by axis; empty when the array is not of floats, not finite, or too large to add up."""
    if array.dtype.kind != "f" or not 0 < array.size <= LARGE or not np.isfinite(array).all():
        return ()
    sums = [array.sum(axis, dtype=np.float64) for axis in range(array.ndim)]
    return tuple((float(s.min()), float(s.max())) for s in sums)


def exp_sums(array: np.ndarray) -> tuple[tuple[float, float], ...]:
    """The same of exp(values), where no value is above zero."""
    if array.dtype.kind != "f" or not array.size or not (array <= 0).all():
        return ()
    return axis_sums(np.exp(array.astype(np.float64)))
