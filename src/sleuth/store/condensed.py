"""Statistics over any number of steps in bounded memory: of each stretch of steps, each tensor's most unusual row stays."""

import numpy as np

from sleuth.core.recording.recording import Table, empty_table
from sleuth.core.statistics import COLUMNS, unpack

COUNT, MEAN, ROOT_M2, NANS, INFS = (COLUMNS.index(name) for name in ("count", "mean", "m2", "nans", "infs"))


class Condensed:
    """Rows come in the packed form in which they are stored, and in the order of their steps.

    Stretches hold a power of two of looks and all the same number of them, so that a stretch of old ones is joined from whole
    shorter ones, and no part of a training is drawn finer than another.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._places: dict[str, int] = {}
        self._steps = np.zeros(0, dtype=np.int64)
        self._looks = np.zeros(0, dtype=np.int64)  # that a row stands for
        self._rows = np.zeros((0, 0, len(COLUMNS)), dtype=np.float32)

    def add(self, steps: np.ndarray, paths: tuple[str, ...], rows: np.ndarray) -> None:
        """`rows[step, tensor, column]`, tensors in the order of `paths`."""
        for path in paths:
            self._places.setdefault(path, len(self._places))
        new = len(self._places) - self._rows.shape[1]
        held = np.pad(self._rows, ((0, 0), (0, new), (0, 0)), constant_values=np.nan) if new else self._rows
        coming = np.full((len(rows), *held.shape[1:]), np.nan, dtype=np.float32)
        coming[:, [self._places[path] for path in paths]] = rows
        self._rows = np.concatenate([held, coming])
        self._steps = np.concatenate([self._steps, steps])
        self._looks = np.concatenate([self._looks, np.ones(len(steps), dtype=np.int64)])
        if len(self._rows) > 2 * self._most:
            self._steps, self._looks, self._rows = self._joined()

    def table(self) -> Table:
        if not len(self._steps):
            return empty_table()
        steps, _, rows = self._joined()
        return Table(steps, tuple(self._places), COLUMNS, unpack(rows))

    def _joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total = int(self._looks.sum())
        stretch = 1
        while total > stretch * self._most:
            stretch *= 2
        if stretch == 1:
            return self._steps, self._looks, self._rows
        begins = np.cumsum(self._looks) - self._looks
        edges = np.flatnonzero(np.diff(begins // stretch, prepend=-1))
        rows = np.stack([_most_unusual(part, far) for part, far in self._stretches(edges)])
        return self._steps[edges], np.add.reduceat(self._looks, edges), rows

    def _stretches(self, edges: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(zip(np.split(self._rows, edges[1:]), np.split(_distance(self._rows), edges[1:]), strict=True))


def _most_unusual(rows: np.ndarray, far: np.ndarray) -> np.ndarray:
    chosen: np.ndarray = rows[far.argmax(axis=0), np.arange(rows.shape[1])]
    return chosen


def _distance(rows: np.ndarray) -> np.ndarray:
    """How far each row is from its tensor's middle: in orders of magnitude; endlessly where it holds NaN or Inf."""
    seen = np.isfinite(rows[:, :, COUNT])
    finite = np.maximum(rows[:, :, COUNT] - rows[:, :, NANS] - rows[:, :, INFS], 1)
    sizes = np.log(np.hypot(rows[:, :, MEAN], rows[:, :, ROOT_M2] / np.sqrt(finite)) + np.float32(1e-38))
    middles = np.array([np.median(column[known]) if known.any() else 0.0 for column, known in zip(sizes.T, seen.T, strict=True)])
    far = np.where(seen, np.abs(sizes - middles), -1.0)
    return np.where(seen & (rows[:, :, NANS] + rows[:, :, INFS] > 0), np.inf, far)
