"""Where the positions of a target stand in what a model returns, and other answers in their place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.runtime.tree import map_arrays


@dataclass(frozen=True)
class Places:
    """`mask`: of the target's positions, laid out along the first axes of an output whose axis `behind` was moved there."""

    mask: np.ndarray
    behind: bool = False  # positions stand last, behind the classes: (samples, classes, positions)


def places(shape: tuple[int, ...], mask: np.ndarray) -> Places | None:
    """None where an output of this shape has no entry a position, or where positions and classes cannot be told apart."""
    rows, columns = mask.shape
    # Where the next element is asked for, outputs may end one earlier. Such a place is padding where this and the next are.
    for width, here in ((columns, mask), (columns - 1, mask[:, 1:] & mask[:, :-1])):
        first = shape[:2] == (rows, width)
        last = len(shape) > 2 and (shape[0], shape[-1]) == (rows, width)
        if first or last:
            return None if first and last else Places(here, behind=last)
    if shape[:2] == (columns, rows):
        return Places(mask.T)
    return Places(mask.reshape(-1)) if shape[:1] == (rows * columns,) else None


@dataclass(frozen=True)
class Exchange:
    """Answers at padded positions give way to those at real ones, or real ones to each other; `blur`: noise is added."""

    mask: np.ndarray
    leaf: int  # which of the arrays with an entry a position
    at_padding: bool
    blur: bool

    def into(self, adapter: Adapter, seed: int) -> Callable[[Any], Any]:
        def change(output: Any) -> Any:
            count = iter(range(1 << 30))

            def one(array: Any) -> Any:
                values = adapter.values(array)
                found = places(values.shape, self.mask) if values.dtype.kind == "f" else None
                if found is None or next(count) != self.leaf:
                    return array
                return adapter.like(self._changed(values, found, np.random.default_rng(seed)), array)

            return map_arrays(output, one, adapter.is_array)

        return change

    def _changed(self, values: np.ndarray, found: Places, rng: np.random.Generator) -> np.ndarray:
        turned = np.moveaxis(values, -1, 1) if found.behind else values
        flat = turned.reshape(found.mask.size, -1).copy()
        padded, real = (np.flatnonzero(m) for m in (found.mask.ravel(), ~found.mask.ravel()))
        rng.shuffle(real)
        count = min(len(padded), len(real) // 2)
        chosen = rng.permutation(padded)[:count] if self.at_padding else real[:count]
        if self.blur:
            flat[chosen] += rng.normal(0, float(flat.std()) or 1.0, flat[chosen].shape).astype(flat.dtype)
        else:
            flat[chosen] = flat[real[len(real) - count :]]
        changed = flat.reshape(turned.shape)
        return np.moveaxis(changed, 1, -1) if found.behind else changed
