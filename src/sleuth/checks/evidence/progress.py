"""Whether a training visibly gets anywhere, for checks that must not accuse one which does."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.observation import Step

# Fewer losses say nothing about a trend.
LEAST_LOSSES = 24
# Standard errors that a difference must exceed to count as one.
SURE = 3.0
# Of the loss at the start: whoever lost this much of it has learned something, whatever the curve does now.
LEARNED = 0.3
# Of the loss at the start: what moved by less did not move.
STILL = 0.01
# Standard errors by which the lowest of ten levels lies below the others by chance.
LUCK = 1.5
# Of what was learned: who lost less may recover with the next steps.
LOST = 0.1
PARTS = 10
# A training that is quick has learned a lot after ten steps.
FIRST = 5


@dataclass(frozen=True)
class Progress:
    """`start` is the loss before anything could go wrong, `late` that of the last third, `best` the lowest level of all."""

    start: float
    late: float
    best: float
    error: float  # standard error of `late`
    best_error: float
    drift: float  # from the first third to the last
    drift_error: float
    falling: bool  # still, beyond noise, from the middle of the training to its end

    @property
    def fell(self) -> float:
        return self.start - self.late

    @property
    def works(self) -> bool:
        lower = self.fell > max(SURE * self.error, STILL * abs(self.start))
        return lower and (self.falling or self.fell > LEARNED * abs(self.start))

    @property
    def still(self) -> bool:
        """Neither up nor down, as far as the noise lets us see."""
        return abs(self.drift) <= max(SURE * self.drift_error, STILL * abs(self.start)) and not self.falling

    @property
    def worsened(self) -> bool:
        """It was clearly lower before."""
        noise = (SURE + LUCK) * math.hypot(self.error, self.best_error)
        return self.late - self.best > max(noise, LOST * abs(self.start - self.best), STILL * abs(self.start))


def progress_of(steps: Sequence[Step]) -> Progress | None:
    """None where the loss cannot tell: too few of them, or several optimisers whose losses pull against each other."""
    if len({s.optimiser for s in steps}) != 1:
        return None
    losses = np.array([s.loss for s in steps if s.loss is not None])
    if len(losses) < LEAST_LOSSES:
        return None
    early, middle, late = np.array_split(losses, 3)
    error, middle_error = _error(late), _error(middle)
    parts = np.array_split(losses, PARTS)
    best = min(parts, key=lambda part: float(np.median(part)))
    start = min(float(losses[0]), float(np.median(losses[:FIRST])))
    return Progress(
        start=start,
        late=float(np.median(late)),
        best=float(np.median(best)),
        error=error,
        best_error=_error(best),
        drift=float(np.median(early) - np.median(late)),
        drift_error=math.hypot(error, _error(early)),
        falling=float(np.median(middle) - np.median(late)) > max(SURE * math.hypot(error, middle_error), STILL * abs(start)),
    )


def _error(losses: np.ndarray) -> float:
    """Of their middle, as the bulk of them tells: a spike among them is no noise."""
    spread = 1.4826 * float(np.median(np.abs(losses - np.median(losses))))
    return spread / math.sqrt(len(losses))
