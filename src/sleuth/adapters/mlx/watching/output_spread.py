"""Whether the answers of a model become one for all samples, where a loss holds several of its answers against each other.

Such a training has no target that would keep them apart, and cannot be done again after its end: it is looked at while it runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.arrays import arrays_in, values
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.location import Location
from sleuth.core.trial import OutputSpread

LEAST_SAMPLES = 8
LEAST_LOOKS = 6
# The looks that are compared with the first: one batch may be of one kind.
LATE = 3


@dataclass(frozen=True)
class Spread:
    samples: int
    spread: float
    size: float


class SeenSpread(NotingRecorder):
    def __init__(self, loss_line: Callable[[], Location | None]) -> None:
        super().__init__()
        self._loss_line = loss_line
        self._seen: list[Spread] = []
        self._steps = 0
        self._fits = True

    def looked(self, look: Look, copy: LookCopy) -> None:
        answers = [values(a) for hearing in look.hearings for output in hearing.outputs for a in arrays_in(output)]
        # One number for a sample may well come to be the same for all: what a critic says of real and of made up ones.
        self._fits &= len(look.hearings) == 1 and len(answers) > 1 and all(map(_is_code, answers))
        if not self._fits:
            self._seen = []
            return
        self._seen.append(Spread(len(answers[0]), max(map(_spread, answers)), max(map(_size, answers))))
        self._steps = copy.step + 1

    def ended(self, model: nn.Module, optimiser: Optimizer | None) -> None:
        if not self._fits or len(self._seen) < LEAST_LOOKS:
            return
        first, late = self._seen[0], self._seen[-LATE:]
        told = OutputSpread(
            first.samples,
            first.spread,
            first.size,
            inputs_differ=first.spread > 0,
            targets=None,
            collapsed=max(s.spread for s in late),
            steps=self._steps,
            location=self._loss_line(),
        )
        self.notes.append(told)


def _is_code(answer: Any) -> bool:
    return answer.ndim == 2 and len(answer) >= LEAST_SAMPLES and answer.shape[1] > 1 and bool(np.isfinite(answer).all())


def _spread(answer: np.ndarray) -> float:
    return math.sqrt(float(np.square(answer - answer.mean(0)).mean()))


def _size(answer: np.ndarray) -> float:
    return math.sqrt(float(np.square(answer).mean()))
