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
from sleuth.probes.probe import Lab, OutOfTime, probe
from sleuth.probes.rates import STEPS, sweep, use_working_rate

RUN_STEPS = 60
# Fewer tell nothing: then the budget is too small for this model.
LEAST_SWEEP = 30
LEAST_RUN = 8
RUNS = 4
# A run's start and end are the mean loss of the same few batches.
JUDGED_BATCHES = 4
NOISE_BATCHES = 8
FACTOR = 10.0


@dataclass(frozen=True)
class Data:
    trained: list[Parts]
    judged: list[Parts]


@dataclass(frozen=True)
class Plan:
    sweep_steps: int
    run_steps: int


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
        data = _data(lab)
        noise = _noise(lab)
        plan = _plan(lab, start)
        lab.bench.restore(start)
        found = sweep(lab, data.trained, lab.time_is_up, plan.sweep_steps)
        rates = [current, current / FACTOR, current * FACTOR, found.suggested]
        runs = []
        course: tuple[float, ...] = ()
        for rate in dict.fromkeys(r for r in rates if r):
            first, last, losses = _run(lab, start, rate, plan.run_steps, data)
            runs.append((rate, first, last))
            course = losses if rate == current else course
        yield RangeTest(
            found.rates, found.losses, noise, found.suggested, found.reason, current, tuple(runs), plan.run_steps, course
        )
    finally:
        lab.bench.restore(start)


def _data(lab: Lab) -> Data:
    """Batches to judge by that are not trained on, where there are enough; learning some by heart is no progress."""
    batches = lab.train.batches
    if len(batches) < 3 * JUDGED_BATCHES:
        return Data(batches, batches[:JUDGED_BATCHES])
    return Data(batches[:-JUDGED_BATCHES], batches[-JUDGED_BATCHES:])


def _noise(lab: Lab) -> float:
    """How much the loss differs between batches while the weights stay."""
    lab.bench.set_training(True)
    losses = [lab.bench.loss(batch) for batch in lab.train.batches[:NOISE_BATCHES]]
    return float(np.std(losses)) if len(losses) > 1 and np.all(np.isfinite(losses)) else 0.0


def _plan(lab: Lab, start: Any) -> Plan:
    """All steps where they fit into the time; fewer of all kinds on a slow model."""
    lab.bench.restore(start)
    lab.bench.step(lab.batch)  # the first step of a model is slower than the others
    began = lab.clock()
    lab.bench.step(lab.batch)
    seconds = max(lab.clock() - began, 1e-6)
    left = min(lab.probe_deadline, lab.started + lab.budget_seconds) - lab.clock()
    judged = JUDGED_BATCHES * 2 * RUNS
    share = min(1.0, (left / seconds - judged) * 0.9 / (STEPS + RUNS * RUN_STEPS))
    plan = Plan(int(STEPS * share), int(RUN_STEPS * share))
    if plan.sweep_steps < LEAST_SWEEP or plan.run_steps < LEAST_RUN:
        raise OutOfTime
    if share < 1:
        lab.notes.append(
            f"Trying learning rates: {plan.sweep_steps} and {plan.run_steps} steps instead of {STEPS} and {RUN_STEPS}, "
            f"because one step takes {seconds:.2f} s"
        )
    return plan


def _run(lab: Lab, start: Any, rate: float, steps: int, data: Data) -> tuple[float, float | None, tuple[float, ...]]:
    """Loss at the start and at the end (None: it blew up) of the same few batches, and the loss of every step."""
    lab.bench.restore(start)
    lab.bench.set_training(True)
    first = _mean_loss(lab, data.judged)
    lab.bench.restore(start)
    lab.bench.set_lr(rate)
    losses: list[float] = []
    for step in range(steps):
        lab.tick()
        loss = lab.bench.step(data.trained[step % len(data.trained)])
        if not math.isfinite(loss):
            return first, None, tuple(losses)
        losses.append(loss)
    last = _mean_loss(lab, data.judged)
    return first, last if math.isfinite(last) else None, tuple(losses)


def _mean_loss(lab: Lab, batches: list[Parts]) -> float:
    return float(np.mean([lab.bench.loss(batch) for batch in batches]))
