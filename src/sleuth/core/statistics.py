"""Statistics of a tensor that merge: over shards, micro-batches and steps.

One tensor is one row of a float64 table with the columns below. `count` counts every element; mean, m2
(the sum of squared distances from the mean), min, max and abs_sum speak of the finite ones. NaN and Inf are
counted and never stored as numbers, so that SQLite, JSON and HTML stay sound.
"""

import math
from dataclasses import dataclass

import numpy as np

COLUMNS = ("count", "mean", "m2", "min", "max", "abs_sum", "zeros", "nans", "infs")

# Binary exponents -128..127 in bins of eight: float16's smallest (2^-24) and largest (2^16) fall on bin edges.
EXPONENT_BINS = 32
EXPONENTS_PER_BIN = 8
LOWEST_EXPONENT = -128


@dataclass(frozen=True)
class Statistics:
    count: int
    mean: float
    m2: float
    min: float
    max: float
    abs_sum: float
    zeros: int
    nans: int
    infs: int

    @property
    def finite(self) -> int:
        return self.count - self.nans - self.infs

    @property
    def variance(self) -> float:
        return self.m2 / self.finite if self.finite else 0.0

    @property
    def std(self) -> float:
        return float(np.sqrt(self.variance))

    @property
    def rms(self) -> float:
        return math.hypot(self.mean, self.std)  # the square of a number that float64 holds need not be one

    @property
    def norm(self) -> float:
        return self.rms * float(np.sqrt(self.finite))

    @property
    def zero_share(self) -> float:
        return self.zeros / self.count if self.count else 0.0

    @property
    def all_finite(self) -> bool:
        return self.nans == 0 and self.infs == 0

    @classmethod
    def from_row(cls, row: np.ndarray) -> "Statistics":
        count, mean, m2, low, high, abs_sum, zeros, nans, infs = (float(v) for v in row[: len(COLUMNS)])
        return cls(int(count), mean, m2, low, high, abs_sum, int(zeros), int(nans), int(infs))

    def to_row(self) -> np.ndarray:
        return np.array([getattr(self, column) for column in COLUMNS], dtype=np.float64)


def pack(table: np.ndarray) -> np.ndarray:
    """As float32, half the space: m2 becomes its root, which has the range of the values themselves."""
    packed = np.array(table, dtype=np.float64)
    packed[..., 2] = np.sqrt(packed[..., 2])
    largest = float(np.finfo(np.float32).max)
    return np.clip(packed, -largest, largest).astype(np.float32)


def unpack(packed: np.ndarray) -> np.ndarray:
    table = packed.astype(np.float64)
    table[..., 2] = np.square(table[..., 2])
    return table


def rms_of(table: np.ndarray) -> np.ndarray:
    """Of each row, as Statistics.rms says it of one."""
    finite = table[:, 0] - table[:, 7] - table[:, 8]
    variance = np.divide(table[:, 2], finite, out=np.zeros(len(table)), where=finite > 0)
    return np.hypot(table[:, 1], np.sqrt(variance))


def norm_of(table: np.ndarray) -> float | None:
    """Of all tensors of a table together; None where one holds NaN or Inf."""
    if table[:, 7:9].any():
        return None
    with np.errstate(over="ignore"):
        return float(np.sqrt((table[:, 2] + table[:, 0] * table[:, 1] ** 2).sum()))


def merge(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows of two tables that describe two parts of the same tensors, joined (Chan et al. 1983)."""
    out = np.array(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    finite_a = a[..., 0] - a[..., 7] - a[..., 8]
    finite_b = b[..., 0] - b[..., 7] - b[..., 8]
    total = finite_a + finite_b
    share_b = np.divide(finite_b, total, out=np.zeros_like(total), where=total > 0)
    delta = b[..., 1] - a[..., 1]
    out[..., 1] = a[..., 1] + delta * share_b
    out[..., 2] = a[..., 2] + b[..., 2] + delta**2 * finite_a * share_b
    # A part without finite values has no minimum; its stored 0 must not win.
    low = np.minimum(np.where(finite_a > 0, a[..., 3], np.inf), np.where(finite_b > 0, b[..., 3], np.inf))
    high = np.maximum(np.where(finite_a > 0, a[..., 4], -np.inf), np.where(finite_b > 0, b[..., 4], -np.inf))
    out[..., 3] = np.where(total > 0, low, 0.0)
    out[..., 4] = np.where(total > 0, high, 0.0)
    for column in (0, 5, 6, 7, 8):
        out[..., column] = a[..., column] + b[..., column]
    return out
