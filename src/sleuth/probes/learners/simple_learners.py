"""Simple learners that are fitted once and then answer for any number of targets.

Ridge regression on the columns, kernel ridge with Gaussian kernels, and nearest neighbours. All are linear in the targets,
so that one factorisation of the inputs serves the targets as they are and every permutation of them. Each sample is
predicted from all the others (leave-one-out), which for ridge has a closed form: (y − ŷ) / (1 − h).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# How many free parameters the ridge penalties leave: a stiff, a middling and a loose fit.
FREEDOMS = (4.0, 16.0, 64.0)
# Widths of the Gaussian kernels, in median distances between samples.
BANDWIDTHS = (0.3, 0.7)
# A kernel over so many landmark samples tells nearly all that the full kernel would, at a tenth of the cost.
LANDMARKS = 256
NEIGHBOURS = (3, 15)
# Targets that are answered for at once: the intermediate arrays stay small.
CHUNK_COLUMNS = 512


@dataclass(frozen=True)
class Ridge:
    name: str
    basis: np.ndarray  # (n, r), orthonormal, each column of mean zero
    shrinkage: np.ndarray  # (r,)

    @property
    def leverage(self) -> np.ndarray:
        return 1 / len(self.basis) + np.square(self.basis) @ self.shrinkage

    def predict(self, targets: np.ndarray, projected: np.ndarray) -> np.ndarray:
        """Each row as the others predict it."""
        fitted = self.basis @ (projected * self.shrinkage[:, None])
        left = (1 - self.leverage)[:, None].astype(np.float32)
        return targets - (targets - fitted) / left


class Bank:
    """All learners over one table of inputs."""

    def __init__(self, table: np.ndarray, rng: np.random.Generator) -> None:
        self.size = len(table)
        distances = _squared_distances(table)
        marks = rng.permutation(self.size)[:LANDMARKS]
        typical = max(float(np.median(distances[:, marks])), 1e-12)
        kernels = [_factorise(_kernel_features(distances[:, marks], marks, typical * width**2)) for width in BANDWIDTHS]
        linear = _factorise(table)
        # Functions of these are smooth: what an honest target may look like.
        self.smooth = [linear, kernels[-1]]
        self.groups = [_ridges("linear", linear)]
        self.groups += [_ridges(f"kernel (width {w:g})", k) for w, k in zip(BANDWIDTHS, kernels, strict=True)]
        self._neighbours = _nearest(distances, min(NEIGHBOURS[-1], self.size - 1))
        self.ridges = [ridge for group in self.groups for ridge in group]
        self.names = [r.name for r in self.ridges] + [f"{k} nearest neighbours" for k in NEIGHBOURS]

    def correlations(self, targets: np.ndarray, orders: np.ndarray) -> np.ndarray:
        """(learners, orders): correlation of held-out predictions with the targets in each of the orders.

        `orders` holds positions, one row an order; −1 leaves that sample without a target.
        """
        width = targets.shape[1]
        filled = np.concatenate([targets, np.zeros((1, width), np.float32)])
        chunk = max(1, CHUNK_COLUMNS // width)
        parts = []
        for start in range(0, len(orders), chunk):
            some = orders[start : start + chunk]
            columns = filled[some].transpose(1, 0, 2).reshape(self.size, -1)
            columns = columns - columns.mean(axis=0)
            parts.append([_correlation(columns, answer, len(some)) for answer in self._answers(columns)])
        return np.concatenate([np.array(p) for p in parts], axis=1)

    def _answers(self, columns: np.ndarray) -> Iterator[np.ndarray]:
        for group in self.groups:
            projected = group[0].basis.T @ columns
            for ridge in group:
                yield ridge.predict(columns, projected)
        total = np.zeros_like(columns)
        for k in range(NEIGHBOURS[-1]):
            if k < self._neighbours.shape[1]:
                total += columns[self._neighbours[:, k]]
            if k + 1 in NEIGHBOURS:
                yield total


def _correlation(columns: np.ndarray, answer: np.ndarray, orders: int) -> np.ndarray:
    shape = (len(columns), orders, -1)
    y, p = columns.reshape(shape), answer.reshape(shape)
    joint = np.einsum("iok,iok->o", y, p)
    size = np.einsum("iok,iok->o", y, y) * np.einsum("iok,iok->o", p, p)
    return np.asarray(joint / np.sqrt(np.maximum(size, 1e-30)), dtype=np.float64)


def _factorise(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(basis, singular values) of the centred table, by its Gram matrix: quick, and precise enough for a ridge."""
    centred = (table - table.mean(axis=0)).astype(np.float64)
    if table.shape[1] <= len(table):
        values, vectors = np.linalg.eigh(centred.T @ centred)
        keep = values > values[-1] * 1e-9
        singular = np.sqrt(values[keep])
        return (centred @ vectors[:, keep] / singular).astype(np.float32), singular
    values, vectors = np.linalg.eigh(centred @ centred.T)
    keep = values > values[-1] * 1e-9
    return vectors[:, keep].astype(np.float32), np.sqrt(values[keep])


def _ridges(name: str, factors: tuple[np.ndarray, np.ndarray]) -> list[Ridge]:
    basis, singular = factors
    most = min(len(singular) * 0.95, len(basis) / 4)
    freedoms = [f for f in FREEDOMS if f < most] or [most]
    return [Ridge(f"{name} ridge of {f:.0f} free parameters", basis, _shrinkage(singular**2, f)) for f in freedoms]


def _shrinkage(squares: np.ndarray, freedom: float) -> np.ndarray:
    """s² / (s² + α) with α such that they sum to `freedom`: found by halving on a logarithmic scale."""
    low, high = np.log(squares[-1]) - 40, np.log(squares.sum() + 1e-30) + 40
    for _ in range(80):
        middle = (low + high) / 2
        if (squares / (squares + np.exp(middle))).sum() > freedom:
            low = middle
        else:
            high = middle
    return np.asarray(squares / (squares + np.exp(high)), dtype=np.float32)


def _squared_distances(table: np.ndarray) -> np.ndarray:
    squares = np.einsum("ij,ij->i", table, table)
    return np.maximum(squares[:, None] + squares[None] - 2 * table @ table.T, 0)


def _kernel_features(to_marks: np.ndarray, marks: np.ndarray, scale: float) -> np.ndarray:
    """Nyström's features: their inner products are the Gaussian kernel, exactly so among the landmarks."""
    kernel = np.exp(-to_marks.astype(np.float64) / (2 * scale))
    values, vectors = np.linalg.eigh(kernel[marks])
    keep = values > 1e-6 * values[-1]
    return np.asarray(kernel @ (vectors[:, keep] / np.sqrt(values[keep])))


def _nearest(distances: np.ndarray, count: int) -> np.ndarray:
    """(n, count) positions of the nearest others, nearest first."""
    own = distances.copy()
    np.fill_diagonal(own, np.inf)
    near = np.argpartition(own, count - 1, axis=1)[:, :count]
    order = np.argsort(np.take_along_axis(own, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)
