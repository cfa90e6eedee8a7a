"""How long the experiments after the end may take, which of them come first, and at what rate the training ran."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sleuth.core.observation import Step
from sleuth.probes.lab.probe import Probe
from sleuth.session.recorded import RecordedTraining

# For experiments: as long as the training took, within bounds.
BUDGET_SECONDS = (6.0, 60.0)
# At least, where each experiment is compiled before it runs, which takes some tenths of a second every time.
COMPILED_SECONDS = 15.0
# Of the steps: one at a rate above all others, as of an update that was misread, is not what a training runs at.
MOST_OF_THE_RATES = 90
# A rate that moved less than this is the one that it began with.
CLEARLY_HIGHER = 2.0
# Of the budget: an experiment that takes less has its turn, whoever waits for it. Later ones may build on what it finds.
LITTLE = 0.1


def budget_for(recorded: RecordedTraining) -> float:
    """Seconds that suit the training's own time."""
    least, most = BUDGET_SECONDS
    least = COMPILED_SECONDS if recorded.kept is not None and recorded.kept.is_compiled else least
    return min(most, max(least, recorded.seconds))


def highest_rate(recorded: RecordedTraining) -> float | None:
    """Where a warm-up, also one that somebody wrote by hand, led to; None: the training ran at the rate that it began with."""
    steps = recorded.history.many(Step)
    rates = [s.lr for s in steps if s.lr is not None]
    if not rates or len({s.optimiser for s in steps}) != 1:
        return None
    high = float(np.percentile(rates, MOST_OF_THE_RATES))
    return high if high > CLEARLY_HIGHER * rates[0] else None


def undecided(recorded: RecordedTraining) -> frozenset[Any]:
    """Kinds of observations that would let a check look which could not so far."""
    waiting = recorded.engine.judge().not_examined
    needs = (need for check in recorded.engine.checks if check.name in waiting for need in check.reads)
    options = (option for need in needs for option in (need if isinstance(need, tuple) else (need,)))
    return frozenset(option for option in options if not recorded.history.has(option))


def undecided_first(probes: Iterable[Probe], wanted: frozenset[Any]) -> list[Probe]:
    """Otherwise in their order. What takes long and only tells again what the training has shown comes last."""
    return sorted(probes, key=lambda probe: bool(wanted) and probe.share >= LITTLE and wanted.isdisjoint(probe.emits))
