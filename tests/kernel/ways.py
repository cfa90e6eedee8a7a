"""Both ways to compute statistics, behind one face: what is said of one must hold for the other."""

from collections.abc import Sequence

import numpy as np

from sleuth import kernel
from sleuth.kernel import fallback

MOST = 100


class InC:
    name = "c"

    def measure(self, array: np.ndarray) -> np.ndarray:
        table = np.zeros((1, len(kernel.COLUMNS)))
        kernel.fused.measure([array], None, table, None)
        return table[0]

    def exponents(self, array: np.ndarray) -> np.ndarray:
        table, bins = np.zeros((1, len(kernel.COLUMNS))), np.zeros((1, kernel.BINS), dtype=np.int32)
        kernel.fused.measure([array], None, table, bins)
        return bins[0]

    def change(self, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> np.ndarray:
        kept, table = _room(before)
        kernel.fused.keep(list(before), None, kept, MOST)
        kernel.fused.changes(list(after), None, kept, MOST, table)
        return table


class InNumPy:
    name = "numpy"

    def measure(self, array: np.ndarray) -> np.ndarray:
        table = np.zeros((1, len(kernel.COLUMNS)))
        fallback.measure([array], table)
        return table[0]

    def exponents(self, array: np.ndarray) -> np.ndarray:
        bins = np.zeros((1, kernel.BINS), dtype=np.int32)
        fallback.count_exponents([array], bins)
        return bins[0]

    def change(self, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> np.ndarray:
        kept, table = _room(before)
        fallback.keep(before, kept, MOST)
        fallback.changes(after, kept, MOST, table)
        return table


def _room(arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    kept = np.zeros(sum(kernel.sample_size(a.size, MOST) for a in arrays))
    return kept, np.zeros((len(arrays), len(kernel.COLUMNS)))
