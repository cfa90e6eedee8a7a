"""Looks for a learning rate: the loss while the rate rises, and short trainings at a few rates from the same start."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import RangeTest
from sleuth.probes.lab.one_batch import sample_count, take_rows
from sleuth.probes.lab.probe import Lab, OutOfTime, probe
from sleuth.probes.lab.rates import STEPS, sweep, use_working_rate

RUN_STEPS = 60
# Fewer tell nothing: then the budget is too small for this model.
LEAST_SWEEP = 30
LEAST_RUN = 8
RUNS = 5
# A run's start and end are the mean loss of the same few batches.
JUDGED_BATCHES = 4
MOST_JUDGED = 8
NOISE_BATCHES = 8
# A slow model gets fewer samples a batch; batch normalisation still has enough of them.
FEW_SAMPLES = 8
FACTOR = 10.0
FAR_BELOW = 100.0
# Of the loss at the start: a rate that gains as much is no matter of concern, and other rates need not be tried.
DOES_WELL = 0.2
# One step's time differs from the next one's, and the sweep also runs every batch once before it starts.
RESERVE = 0.6


@dataclass(frozen=True)
class Data:
    trained: list[Parts]
    judged: list[Parts]


@dataclass(frozen=True)
class Run:
    rate: float
    first: float  # mean loss of the judged batches
    last: float | None  # None: it blew up
    losses: tuple[float, ...]  # of every step
    error: float | None = None  # standard error of what it gained


@dataclass(frozen=True)
class Plan:
    sweep_steps: int
    run_steps: int
    data: Data


@probe(
    title="Trying learning rates",
    stage=Stage.HYPERPARAMETERS,
    rank=10,
    emits=(RangeTest,),
    needs=("forward", "loss", "backward"),
    share=0.25,
)
def range_test(lab: Lab) -> Iterator[Observation]:
    if lab.bench.lr is None:
        raise Unsupported("no optimiser was given")
    start = lab.bench.snapshot()
    try:
        current = use_working_rate(lab) or 0.0
        plan = _plan(lab, start)
        lab.bench.restore(start)
        noise = _noise(lab, plan.data.trained)
        found = sweep(lab, plan.data.trained, lab.time_is_up, plan.sweep_steps)
        runs = list(_runs(lab, start, current, found.suggested, noise, plan))
        yield RangeTest(
            rates=found.rates,
            losses=found.losses,
            noise=noise,
            suggested=found.suggested,
            reason=found.reason,
            current=current,
            runs=tuple((run.rate, run.first, run.last) for run in runs),
            run_steps=plan.run_steps,
            course=next((run.losses for run in runs if run.rate == current), ()),
            gain_errors=tuple(run.error for run in runs),
        )
    finally:
        lab.bench.restore(start)


def _runs(lab: Lab, start: Any, current: float, suggested: float | None, noise: float, plan: Plan) -> Iterator[Run]:
    """At the current rate, at the suggested one and, unless the current one does well, at a tenth and ten times of it.

    Far below the suggested rate, also at ten times that: what the loss can fall in so few steps shows best there.
    """
    well = False
    bold = suggested * FACTOR if suggested and current * FAR_BELOW < suggested else None
    for rate in dict.fromkeys(r for r in (current, suggested, bold, current / FACTOR, current * FACTOR) if r):
        if well and rate not in (current, suggested):
            return
        run = _run(lab, start, rate, plan)
        yield run
        if rate == current and run.last is not None:
            well = run.first - run.last > max(DOES_WELL * abs(run.first), noise)


def _noise(lab: Lab, batches: list[Parts]) -> float:
    """How much the loss differs between batches while the weights stay."""
    lab.bench.set_training(True)
    losses = [lab.bench.loss(batch) for batch in batches[:NOISE_BATCHES]]
    return float(np.std(losses)) if len(losses) > 1 and np.all(np.isfinite(losses)) else 0.0


def _plan(lab: Lab, start: Any) -> Plan:
    """All steps and samples where they fit into the time; on a slow model fewer samples a batch, then fewer steps."""
    whole = lab.train.batches
    share = _share(lab, start, whole)
    if share >= 1:
        return Plan(STEPS, RUN_STEPS, _data(whole))
    few = [_few(lab, batch) for batch in whole]
    share = min(1.0, _share(lab, start, few))
    plan = Plan(int(STEPS * share), int(RUN_STEPS * share), _data(few))
    if plan.sweep_steps < LEAST_SWEEP or plan.run_steps < LEAST_RUN:
        raise OutOfTime(
            f"the {LEAST_SWEEP} steps it takes at least do not fit into what is left of budget_seconds={lab.budget_seconds:g}"
        )
    lab.notes.append(
        f"Trying learning rates: on {FEW_SAMPLES} samples a batch with {plan.sweep_steps} and {plan.run_steps} steps instead of "
        f"{STEPS} and {RUN_STEPS}, because the model is slow"
    )
    return plan


def _share(lab: Lab, start: Any, batches: list[Parts]) -> float:
    """How many times all steps would fit into the time that is left."""
    lab.bench.restore(start)
    seconds = []
    for batch in (batches[0], batches[0], batches[-1]):
        began = lab.clock()
        lab.bench.step(batch)
        seconds.append(lab.clock() - began)
    left = min(lab.probe_deadline, lab.started + lab.budget_seconds) - lab.clock()
    return left * RESERVE / max(min(seconds), 1e-6) / (STEPS + RUNS * RUN_STEPS)


def _few(lab: Lab, batch: Parts) -> Parts:
    size = sample_count(lab, batch)
    return batch if size is None or size <= FEW_SAMPLES else take_rows(lab, batch, np.arange(FEW_SAMPLES))


def _data(batches: list[Parts]) -> Data:
    """Batches to judge by that are not trained on, where there are enough; learning some by heart is no progress."""
    if len(batches) < 3 * JUDGED_BATCHES:
        return Data(batches, batches[:JUDGED_BATCHES])
    held = min(MOST_JUDGED, len(batches) // 3)
    return Data(batches[:-held], batches[-held:])


def _run(lab: Lab, start: Any, rate: float, plan: Plan) -> Run:
    data = plan.data
    lab.bench.restore(start)
    lab.bench.set_training(True)
    before = _losses(lab, data.judged)
    first = float(np.mean(before))
    lab.bench.restore(start)
    lab.bench.set_lr(rate)
    losses: list[float] = []
    for step in range(plan.run_steps):
        lab.tick()
        loss = lab.bench.step(data.trained[step % len(data.trained)])
        if not math.isfinite(loss):
            return Run(rate, first, None, tuple(losses))
        losses.append(loss)
    gains = before - _losses(lab, data.judged)
    if not np.all(np.isfinite(gains)):
        return Run(rate, first, None, tuple(losses))
    # Each batch is set against itself: that some are harder than others is no noise of the gain.
    error = float(gains.std(ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else None
    return Run(rate, first, first - float(gains.mean()), tuple(losses), error)


def _losses(lab: Lab, batches: list[Parts]) -> np.ndarray:
    return np.array([lab.bench.loss(batch) for batch in batches])
