"""Gradients that a loop adds up itself, outside of the model."""

from collections.abc import Mapping

import numpy as np

SAME = 1e-5


class GradientSums:
    """What the update is given against what backward returned.
    One small array is followed through every step."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._before: np.ndarray | None = None  # what the last step was given
        self.parts: list[np.ndarray] = []  # what the backwards since then gave

    def backward(self, found: Mapping[str, np.ndarray | None]) -> None:
        if self._path is None:
            sizes = {k: g.size for k, g in found.items() if g is not None and g.size > 1}
            self._path = min(sizes, key=lambda k: sizes[k]) if sizes else None
        gradient = found.get(self._path) if self._path is not None else None
        if gradient is not None:
            self.parts.append(np.array(gradient))

    def step(self, found: Mapping[str, np.ndarray | None], *, added: bool) -> tuple[bool, float | None]:
        """(was what an earlier step had used still in it, by which number was the sum of the parts divided; None where it is
        something else than a part of it). `added`: each backward adds to what is there, and the last one holds the sum."""
        given = found.get(self._path) if self._path is not None else None
        parts, before = self.parts, self._before
        self.parts, self._before = [], None if given is None else np.array(given)
        if given is None or not parts or any(p.shape != given.shape for p in parts):
            return False, None
        total = parts[-1] if added else np.sum(parts, axis=0)
        again = before is not None and bool(before.any()) and not _same(given, total) and _same(given - total, before)
        size = float((total * total).sum())
        share = float((given * total).sum()) / size if size > 0 else 0.0
        return again, 1 / share if share > 0 and _same(given, share * total) else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    size = float(np.abs(other).max(initial=0.0))
    return size > 0 and bool(np.abs(one - other).max(initial=0.0) <= SAME * size)
