"""Fewer points that tell the same story: whatever is done here, no spike and no gap is lost."""

from itertools import pairwise

import numpy as np


def thin_line(steps: np.ndarray, values: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """At most about `points` of them: the least and the largest of each stretch, and one NaN where a stretch holds any."""
    if len(values) <= points:
        return steps, values
    stretches = max(points // 3, 1)
    edges = np.linspace(0, len(values), stretches + 1).astype(np.int64)
    kept = {0, len(values) - 1}
    for begin, end in pairwise(edges.tolist()):
        part = values[begin:end]
        missing = np.isnan(part)
        if missing.any():
            kept.add(int(begin + missing.argmax()))
        if not missing.all():
            kept |= {int(begin + np.nanargmin(part)), int(begin + np.nanargmax(part))}
    places = np.array(sorted(kept))
    return steps[places], values[places]


def stretches(grid: np.ndarray, columns: int) -> np.ndarray:
    """Where the rows of `grid[step, tensor]` begin that are drawn as one column; at most `columns` of them.

    Where tensors take turns, as those of two models do, a stretch is as long as it takes to see each of them.
    """
    steps = len(grid)
    turns = int(np.ceil(grid.size / max(np.isfinite(grid).sum(), 1)))
    count = min(columns, max(steps // max(turns, 1), 1))
    return np.linspace(0, steps, min(count, steps) + 1).astype(np.int64)[:-1]


def thin_grid(grid: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """In each stretch the value farthest from the tensor's middle."""
    if len(begins) == len(grid):
        return grid
    known = np.isfinite(grid)
    with np.errstate(invalid="ignore"):
        far = np.where(known, np.abs(grid - _middles(grid, known)), -1.0)
    largest = np.maximum(np.maximum.reduceat(far, begins, axis=0), 0.0)
    stretch = np.searchsorted(begins, np.arange(len(grid)), side="right") - 1
    thinned = np.full((len(begins), grid.shape[1]), np.nan)
    for row, place in enumerate(stretch.tolist()):
        here = far[row] >= largest[place]
        thinned[place, here] = grid[row, here]
    return thinned


def _middles(grid: np.ndarray, known: np.ndarray) -> np.ndarray:
    filled = np.where(known, grid, np.nan)
    seen = known.any(axis=0)
    middles = np.zeros(grid.shape[1])
    if seen.any():
        middles[seen] = np.nanmedian(filled[:, seen], axis=0)
    return middles
