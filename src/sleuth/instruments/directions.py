"""Random directions in the space of weights, filter by filter as long as the weights themselves (Li et al. 2018).

Without that a network whose weights are ten times larger looks ten times flatter, though it computes the same.
"""

from collections.abc import Mapping

import numpy as np

Weights = Mapping[str, np.ndarray]


def filter_normalised(weights: Weights, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """A filter is what makes one unit: a row of a matrix, a channel of a convolution. Biases and scales are not moved."""
    return {path: _direction(values, generator) for path, values in weights.items()}


def _direction(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    drawn = generator.standard_normal(values.shape)
    if values.ndim < 2:
        return np.zeros_like(values)
    axes = tuple(range(1, values.ndim))
    lengths = np.sqrt(np.sum(values.astype(np.float64) ** 2, axis=axes, keepdims=True))
    drawn *= lengths / (np.sqrt(np.sum(drawn**2, axis=axes, keepdims=True)) + 1e-10)
    return drawn.astype(values.dtype)


def moved(weights: Weights, directions: list[dict[str, np.ndarray]], distances: tuple[float, ...]) -> dict[str, np.ndarray]:
    """The weights so far along each direction."""
    return {
        path: values + sum(values.dtype.type(a) * d[path] for a, d in zip(distances, directions, strict=True))
        for path, values in weights.items()
    }
