"""The loss around one point of a model's weights, in float64."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bench
from sleuth.core.subject import Parts


@dataclass
class Surface:
    """The loss around one point, on a bench of its own."""

    bench: Bench
    batch: Parts
    state: Any
    weights: Mapping[str, np.ndarray]
    gradients: Mapping[str, np.ndarray]
    size: float  # of the loss
    rng: np.random.Generator

    def place(self, moved: Mapping[str, np.ndarray]) -> None:
        """Everything as at that point, except for these parameters."""
        self.bench.restore(self.state)
        self.bench.set_training(False)
        for path, values in moved.items():
            self.bench.write(path, values)

    def at(self, moved: Mapping[str, np.ndarray]) -> float:
        self.place(moved)
        return self.bench.loss(self.batch)


def direction_in(surface: Surface, path: str) -> np.ndarray:
    """Half along the gradient, so that the slope is not lost, half at random, so that no part is left out.

    Entries without gradient stay: the row of an embedding that stands for padding has none on purpose.
    """
    weights, gradient = surface.weights[path], surface.gradients[path]
    random = surface.rng.normal(size=weights.shape)
    along: np.ndarray | float = 0.0
    if gradient.any():
        random, along = random * (gradient != 0), gradient / np.linalg.norm(gradient)
    sign = surface.rng.choice([-1.0, 1.0])
    return np.asarray(sign * size_of(weights) * (along + random / np.linalg.norm(random)))


def size_of(values: np.ndarray) -> float:
    return max(float(np.sqrt(np.mean(values**2))) if values.size else 0.0, 1e-2)
