"""A formula that makes a layer's output of its input. The one that fits what a side put out says what that side computes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.comparing.distance import apart

# A formula in float64 fits what a framework computed in float64, or in float32, to this.
FITS = {"float64": 1e-9, "float32": 2e-6}


@dataclass(frozen=True)
class Task:
    """One side's layer. Arrays have their units last; weights are in the common form."""

    x: np.ndarray
    y: np.ndarray
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        return FITS.get(str(self.y.dtype), 1e-3)


@dataclass(frozen=True)
class Formula:
    reason: str  # a word: epsilon, padding, variant, …
    text: str  # what a side that fits it computes: "epsilon 1e-05"
    make: Callable[[Task], np.ndarray]
    keep: Callable[[np.ndarray], np.ndarray] = lambda y: y  # of the output, what the formula speaks of
    whole: Callable[[Task], np.ndarray] | None = None  # all of the output, where `make` gives a part

    def misses(self, task: Task) -> float:
        with np.errstate(all="ignore"):
            made, wanted = self.make(task), self.keep(task.y)
        return apart(made, wanted) if made.shape == wanted.shape else float("inf")


Maker = Callable[[Task], Iterator[Formula]]


def fitting(maker: Maker, tasks: Sequence[Task]) -> tuple[Formula, Task] | None:
    """The first formula that makes the output from one of the inputs that came before, nearest first."""
    for task in tasks:
        for formula in maker(task):
            if formula.misses(task) <= task.tolerance:
                return formula, task
    return None
