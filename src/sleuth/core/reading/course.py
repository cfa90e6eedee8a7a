"""Single tensors over the steps at which they were measured."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Frame, Parameter
from sleuth.core.statistics import rms_of

# Embeddings move only in the rows that were asked for; norms live on a scale of their own.
OWN_SCALE = ("embedding", "norm", "batchnorm")


@dataclass(frozen=True)
class Course:
    path: str
    steps: np.ndarray
    table: np.ndarray  # one row of statistics a step

    @property
    def rms(self) -> np.ndarray:
        return rms_of(self.table)

    @property
    def zero_share(self) -> np.ndarray:
        return self.table[:, 6] / np.maximum(self.table[:, 0], 1)

    @property
    def is_zero(self) -> np.ndarray:
        return self.table[:, 6] == self.table[:, 0]

    @property
    def finite(self) -> np.ndarray:
        return np.asarray(~self.table[:, 7:9].any(axis=1))

    @property
    def series(self) -> Series:
        return Series(self.path, tuple(self.steps.astype(float).tolist()), tuple(self.rms.tolist()))

    def at(self, steps: np.ndarray) -> "Course":
        """Only these steps."""
        chosen = np.isin(self.steps, steps)
        return Course(self.path, self.steps[chosen], self.table[chosen])


def courses_of(frames: Iterable[Frame]) -> dict[str, Course]:
    """By path, in the order in which the tensors were first seen."""
    steps: dict[str, list[int]] = defaultdict(list)
    rows: dict[str, list[np.ndarray]] = defaultdict(list)
    for frame in frames:
        for path, row in zip(frame.paths, frame.table, strict=True):
            steps[path].append(frame.step)
            rows[path].append(row)
    return {path: Course(path, np.array(steps[path]), np.array(rows[path])) for path in steps}


def together(*courses: Course) -> tuple[Course, ...]:
    """The same tensor in several roles, at the steps at which all of them were measured."""
    common = courses[0].steps
    for course in courses[1:]:
        common = np.intersect1d(common, course.steps)
    return tuple(course.at(common) for course in courses)


def matrices_of(architecture: Architecture) -> dict[str, Parameter]:
    """The weights proper, by path: not biases, nor what has a scale of its own."""
    parameters = (p for p in architecture.parameters if p.trainable and len(p.shape) > 1 and p.size)
    return {p.path: p for p in parameters if p.family not in OWN_SCALE}


def usual_size(parameter: Parameter) -> float:
    """Of a weight that keeps the size of its inputs: 1/√fan_in."""
    return float((min(parameter.shape[0], parameter.shape[1]) / parameter.size) ** 0.5)
