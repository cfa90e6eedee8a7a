"""Which shifts of the targets are worth a closer look: all of them at once, by Fourier transform.

A ridge explains of targets moved by k rows the sum over its directions of (shrunk) squared inner products. For all k
together an inner product is a cross-correlation, so that thousands of shifts cost as much as a handful tried one by one.
"""

from dataclasses import dataclass

import numpy as np

from sleuth.probes.learners.simple_learners import Bank, Ridge

# Shifts that each kind of learner may propose.
CANDIDATES = 6
# Directions of a learner beyond these add little to what it explains.
DIRECTIONS = 64
# A shift that leaves fewer targets than this share beside an input is not tried.
LEAST_LEFT = 0.25


@dataclass(frozen=True)
class Shifts:
    """`proposed`: by what np.roll would move the targets. `tried`: how many shifts these were chosen among."""

    proposed: tuple[int, ...]
    tried: int
    wraps: bool  # the data set is complete, so that what leaves at one end comes in at the other


def likely_shifts(bank: Bank, targets: np.ndarray, positions: np.ndarray, total: int | None, beyond: int) -> Shifts:
    """Shifts by more than `beyond` rows. `positions` rise; in a large data set they come in runs of neighbours."""
    runs = np.split(np.arange(len(positions)), np.flatnonzero(np.diff(positions) != 1) + 1)
    wraps = len(positions) == total
    length = len(positions) if wraps else 2 * max(map(len, runs))
    present = _lay_out(np.ones((len(positions), 1)), runs, length)
    counts = np.round(_correlate(present, present, length)[0, 0])
    shifts = np.where(np.arange(length) <= length // 2, np.arange(length), np.arange(length) - length)
    allowed = (np.abs(shifts) > beyond) & (counts >= LEAST_LEFT * len(positions))
    laid = _lay_out(targets, runs, length)
    found: set[int] = set()
    for group in bank.groups:
        explained = _explained(group[len(group) // 2], laid, runs, length)
        score = np.where(allowed, explained / np.maximum(counts, 1), -np.inf)
        best = np.argsort(-score, kind="stable")[:CANDIDATES]
        found.update(shifts[best[np.isfinite(score[best])]].tolist())
    return Shifts(tuple(sorted(found)), int(allowed.sum()), wraps)


def _explained(ridge: Ridge, targets: np.ndarray, runs: list[np.ndarray], length: int) -> np.ndarray:
    """By shift: how much of the targets this ridge fits."""
    strong = np.argsort(-ridge.shrinkage, kind="stable")[:DIRECTIONS]
    total = np.zeros(length)
    for direction in strong:
        laid = _lay_out(ridge.basis[:, [direction]], runs, length)
        total += ridge.shrinkage[direction] * np.square(_correlate(laid, targets, length)).sum(axis=(0, 1))
    return total


def _lay_out(columns: np.ndarray, runs: list[np.ndarray], length: int) -> np.ndarray:
    """(runs, columns, frequencies): each run by itself, so that rows are shifted only within their run."""
    laid = np.zeros((len(runs), columns.shape[1], length))
    for number, run in enumerate(runs):
        laid[number, :, : len(run)] = columns[run].T
    return np.fft.rfft(laid, n=length, axis=-1)


def _correlate(one: np.ndarray, other: np.ndarray, length: int) -> np.ndarray:
    """(columns of one, columns of other, shifts): Σ one[i] · other[i − shift], over all runs."""
    product = np.einsum("raf,rbf->abf", one, other.conj())
    return np.asarray(np.fft.irfft(product, n=length, axis=-1))
