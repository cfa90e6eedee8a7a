"""Fused statistics of arrays: in C where it was built, else in NumPy with the same values. Imports NumPy only."""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from sleuth.kernel import fallback
from sleuth.kernel.fallback import BINS, COLUMNS, sample_size

fused: ModuleType | None
try:
    from sleuth.kernel import fused
except ImportError:  # there was no compiler
    fused = None

__all__ = ["BINS", "COLUMNS", "KINDS", "fused", "measure", "measure_exponents", "sample_size"]

# What the C code calls each dtype; the same order as in reading.h.
KINDS = {
    name: number
    for number, name in enumerate(
        ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
    )
}


def measure(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One row of statistics an array; see core.statistics for what the columns mean."""
    table = np.zeros((len(arrays), len(COLUMNS)))
    if fused is None or not _fill(arrays, table, None):
        fallback.measure(arrays, table)
    return table


def measure_exponents(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The same, and one row of counts of binary exponents; of a large array only a sample is counted."""
    table = np.zeros((len(arrays), len(COLUMNS)))
    exponents = np.zeros((len(arrays), BINS), dtype=np.int32)
    if fused is None or not _fill(arrays, table, exponents):
        fallback.measure(arrays, table)
        fallback.count_exponents(arrays, exponents)
    return table, exponents


def _fill(arrays: Sequence[np.ndarray], table: np.ndarray, exponents: np.ndarray | None) -> bool:
    """False: an array is of a dtype that the C code does not read."""
    assert fused is not None
    try:
        fused.measure(list(arrays), None, table, exponents)
    except (TypeError, ValueError, BufferError):
        return False
    return True
