"""Whether a training begins anew in the middle of a script, under the same function: other folds, another seed."""

from collections import deque

import mlx.core as mx
import numpy as np

from sleuth.adapters.mlx.arrays import evaluated, values
from sleuth.adapters.mlx.trees.tree import Named
from sleuth.adapters.mlx.watching.pending_steps import LAG, Record

# A loss is known only so many steps later.
WINDOW = LAG + 4
# Of what the loss had lost: whoever is back by more may have begun anew, and the weights are asked.
BACK = 0.5
# Two sets of random weights have nothing in common, and the same size.
ALIKE = 0.5
SAME_SIZE = 0.3
# Of one step; of larger weights it is not asked.
MOST_BYTES = 4 << 20
MOST_INQUIRIES = 32


class Restarts:
    def __init__(self) -> None:
        self._first: Named | None = None
        self._lately: deque[Named] = deque(maxlen=WINDOW)
        self._losses: tuple[float, float] | None = None  # the first and the last
        self._is_suspect = False
        self._asked = 0

    def heard(self, record: Record) -> Record:
        value = record.value
        if value is not None and np.isfinite(value):
            first, last = self._losses or (value, value)
            self._is_suspect |= value - last > BACK * (first - last) > 0
            self._losses = first, value
        return record

    def weights_came(self, weights: Named) -> None:
        matrices = {name: mx.array(a) for name, a in weights.items() if a.ndim > 1}
        if sum(a.nbytes for a in matrices.values()) <= MOST_BYTES:
            self._first = self._first or matrices
            self._lately.append(matrices)

    def begins_again(self) -> bool:
        """Asked only where the loss says that it may be so: to compare weights takes time."""
        suspect, self._is_suspect = self._is_suspect, False
        if not suspect or self._first is None or len(self._lately) < 2 or self._asked >= MOST_INQUIRIES:
            return False
        self._asked += 1
        found = [_flat(one) for one in (self._first, self._lately[0], self._lately[-1])]
        if any(one is None or not np.isfinite(one).all() for one in found):
            return False
        first, before, now = (one for one in found if one is not None)
        sizes = [float(np.linalg.norm(one)) for one in (first, before, now)]
        if not all(sizes):
            return False
        returned = np.linalg.norm(now - first) < BACK * np.linalg.norm(before - first)
        strange = abs(before @ now) < ALIKE * sizes[1] * sizes[2] and abs(sizes[2] / sizes[0] - 1) < SAME_SIZE
        return bool(returned or strange)


def _flat(weights: Named) -> np.ndarray | None:
    arrays = list(weights.values())
    if not arrays or not all(evaluated(arrays)):
        return None
    return np.concatenate([values(a).ravel().astype(np.float64) for a in arrays])
