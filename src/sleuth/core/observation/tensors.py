"""What was measured on tensors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sleuth.core.observation.base import Observation, Role
from sleuth.core.statistics import Statistics


@dataclass(frozen=True)
class Frame(Observation):
    """Statistics of many tensors at one step: one row a tensor, in the order of `paths`."""

    step: int
    role: Role
    paths: tuple[str, ...]
    table: np.ndarray
    exponents: np.ndarray | None = None  # counts of binary exponents in bins of eight; of large tensors only a sample is counted
    sampled: int = 0  # not 0: the table speaks of at most so many values of each tensor

    def statistics(self) -> dict[str, Statistics]:
        return {path: Statistics.from_row(row) for path, row in zip(self.paths, self.table.tolist(), strict=True)}


@dataclass(frozen=True)
class Precision(Observation):
    """In which dtypes the layers of a training compute: seen at its first deep look, and again when they change."""

    step: int
    activations: Mapping[str, str]  # layer → dtype of what it puts out


@dataclass(frozen=True)
class Units(Observation):
    """Per unit of one layer (channel of a convolution, column of a linear layer), over `samples` samples."""

    step: int
    path: str
    family: str
    activation: str  # "relu", "sigmoid", …; "" when the layer is not an activation
    samples: int
    nonzero: np.ndarray
    min: np.ndarray
    max: np.ndarray
    pinned: float | None = None  # share of values at the ends of a bounded activation; None: it has no ends
