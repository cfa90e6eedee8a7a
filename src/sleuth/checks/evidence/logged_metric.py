"""A metric that the user logged, beside the answers that were seen on the way to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.history import Seen
from sleuth.core.observation import Evaluation, Predictions, Split

# Room for chance, in standard errors of the samples that were seen.
ERRORS = 4.0


@dataclass(frozen=True)
class Logged:
    step: int
    value: float


@dataclass(frozen=True)
class Pair:
    """A logged accuracy, and what the answers that were seen allow."""

    step: int
    value: float
    low: float
    high: float
    first_class: float  # the share of class 0 among the targets


def logged_course(logged: Sequence[Evaluation], split: Split, names: tuple[str, ...]) -> list[Logged]:
    found = []
    for evaluation in logged:
        value = next((v for name, v in evaluation.metrics.items() if name.lower() in names), None)
        if evaluation.split is split and value is not None and np.isfinite(value):
            found.append(Logged(evaluation.step, float(value)))
    return found


def beside(course: list[Logged], seen: Seen, split: Split) -> list[Pair]:
    """Validation beside the very pass that was just heard, training beside what was seen on the way to it."""
    looks = [p for p in seen.all(Predictions) if p.split is split]
    pairs = []
    for entry in course:
        # What is logged after a step counts as the next one's.
        mine = [p for p in looks if (p.step == entry.step if split is Split.VALIDATION else p.step < entry.step)]
        if not mine or len({(str(p.location), p.outputs) for p in mine}) > 1:
            continue
        zeros = sum(p.targets.get(0, 0) for p in mine) / sum(p.samples for p in mine)
        pairs.append(Pair(entry.step, entry.value, *_range(mine, entry.step), zeros))
    return pairs


def _range(looks: list[Predictions], now: int) -> tuple[float, float]:
    """Nobody knows over how many batches a metric was averaged: the least and the largest mean from some step until now."""
    steps = np.array([*(p.step for p in looks), max(now, looks[-1].step + 1)], dtype=float)
    weights, samples = np.diff(steps).clip(min=1.0), np.array([p.samples for p in looks], dtype=float)
    shares = np.array([p.right for p in looks]) / samples
    cautious = (shares * samples + 1) / (samples + 2)
    # Summed from the last look back to each of them.
    total = np.cumsum(weights[::-1])
    means = np.cumsum((weights * shares)[::-1]) / total
    errors = np.sqrt(np.cumsum((weights**2 * cautious * (1 - cautious) / samples)[::-1])) / total
    return float((means - ERRORS * errors).min()), float((means + ERRORS * errors).max())
