"""Simple learners that answer for each training sample from the others, and for new samples from all of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Ridge penalties, in mean squares of the features.
PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
# Widths of the Gaussian kernels, in median distances between samples.
WIDTHS = (0.3, 0.7)
LANDMARKS = 256
NEIGHBOURS = (1, 3, 7, 15)


@dataclass(frozen=True)
class Answers:
    learner: str
    held_out: np.ndarray  # (n, k): each training sample from the others
    new: np.ndarray  # (m, k)


def answers(table: np.ndarray, targets: np.ndarray, new: np.ndarray, rng: np.random.Generator) -> Iterator[Answers]:
    """Standardised inputs and target columns of the training samples, inputs of new ones."""
    distances = _distances(table, table)
    to_new = _distances(new, table)
    yield from _ridges("linear ridge", table, targets, new)
    marks = rng.permutation(len(table))[:LANDMARKS]
    typical = max(float(np.median(distances[:, marks])), 1e-12)
    for width in WIDTHS:
        scale = 2 * typical * width**2
        values, vectors = np.linalg.eigh(np.exp(-distances[np.ix_(marks, marks)] / scale))
        keep = values > 1e-6 * values[-1]
        whiten = vectors[:, keep] / np.sqrt(values[keep])
        features, of_new = (np.exp(-d[:, marks] / scale) @ whiten for d in (distances, to_new))
        yield from _ridges("kernel ridge", features, targets, of_new)
    yield from _neighbours(distances, to_new, targets)


def _ridges(name: str, features: np.ndarray, targets: np.ndarray, new: np.ndarray) -> Iterator[Answers]:
    mean, middle = features.mean(axis=0), targets.mean(axis=0)
    centred, wanted = (features - mean).astype(np.float64), targets - middle
    squares, right = np.linalg.eigh(centred.T @ centred)
    keep = squares > 1e-9 * squares[-1]
    singular, right = np.sqrt(squares[keep]), right[:, keep]
    left = centred @ right / singular
    for penalty in PENALTIES:
        alpha = penalty * float(np.square(singular).mean()) + 1e-12
        shrunk = np.square(singular) / (np.square(singular) + alpha)
        fitted = left @ (shrunk[:, None] * (left.T @ wanted))
        leverage = np.square(left) @ shrunk + 1 / len(features)
        held_out = targets - (wanted - fitted) / np.maximum(1 - leverage, 1e-6)[:, None]
        weights = right @ ((singular / (np.square(singular) + alpha))[:, None] * (left.T @ wanted))
        yield Answers(name, held_out, (new - mean) @ weights + middle)


def _neighbours(distances: np.ndarray, to_new: np.ndarray, targets: np.ndarray) -> Iterator[Answers]:
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    most = min(NEIGHBOURS[-1], len(targets) - 1)
    near, near_new = (_nearest(d, most) for d in (others, to_new))
    for k in NEIGHBOURS:
        if k <= most:
            held_out, new = (targets[rows[:, :k]].mean(axis=1) for rows in (near, near_new))
            yield Answers(f"{k} nearest neighbours" if k > 1 else "the nearest neighbour", held_out, new)


def _nearest(distances: np.ndarray, count: int) -> np.ndarray:
    """Positions of the nearest, nearest first."""
    some = np.argpartition(distances, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(distances, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    squares = np.einsum("ij,ij->i", one, one)[:, None] + np.einsum("ij,ij->i", other, other)[None]
    return np.maximum(squares - 2 * one @ other.T, 0).astype(np.float64)
