"""Memorises one batch: as the user set it up, at a rate found by a range test, and once more without its inputs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Absent, Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Ablation, Overfit
from sleuth.probes.batch.floors import Floor, floor_of
from sleuth.probes.batch.input_ablation import found_out, without_inputs
from sleuth.probes.batch.small_model_batch import Answers, answers_now, crowd_of
from sleuth.probes.lab.memorising import Run, memorise
from sleuth.probes.lab.one_batch import Samples, few_samples
from sleuth.probes.lab.probe import Lab, OutOfTime, probe
from sleuth.probes.lab.rates import sweep, use_working_rate

STEPS = 300
# The searching run decides, so it gets longer.
SEARCH_STEPS = 600
# Of a slow model; batch normalisation still has enough of them.
FEW_SAMPLES = 8
# What counts as learned by heart (core.trial.Overfit.remaining), with a little to spare.
LEARNED = 0.008
# The rate of the range test first; where that fails, a safer one.
SAFER = 10.0


@dataclass(frozen=True)
class Attempt:
    rate: float | None  # None: as the user set it up
    run: Run
    answers: Answers | None = None  # at the end, where the goal was missed


@probe(
    title="Memorising one batch",
    stage=Stage.BATCH,
    rank=10,
    emits=(Overfit, Ablation),
    needs=("forward", "loss", "backward"),
    share=0.3,
)
def overfit(lab: Lab) -> Iterator[Observation]:
    start = lab.bench.snapshot()
    try:
        samples = _affordable(lab, few_samples(lab), start)
        lab.bench.restore(start)
        floor = floor_of(lab, samples.batch, samples.distinct)
        trial, best = _memorise(lab, samples, floor, start)
        lab.facts["one_batch_left"] = trial.remaining(best.run.losses)
        yield trial
        yield from _ablate(lab, samples, floor, start, trial, best)
    finally:
        lab.bench.restore(start)


def _affordable(lab: Lab, samples: Samples, start: Any) -> Samples:
    """Fewer samples where one step takes so long that not all steps fit into the time."""
    if samples.count is None or samples.count <= FEW_SAMPLES:
        return samples
    seconds = _step_seconds(lab, samples, start)
    if seconds * STEPS >= _seconds_left(lab) / 2:  # the first of all may have been compiled for the most of its time
        seconds = _step_seconds(lab, samples, start)
    if seconds * STEPS < _seconds_left(lab) / 2:
        return samples
    few = few_samples(lab, FEW_SAMPLES)
    lab.notes.append(
        f"Memorising one batch: {few.count} samples instead of {samples.count}, because a step takes {seconds:.1f} s"
    )
    return few


def _step_seconds(lab: Lab, samples: Samples, start: Any) -> float:
    lab.bench.restore(start)
    lab.bench.set_training(True)
    began = lab.clock()
    lab.bench.step(samples.batch)
    seconds = lab.clock() - began
    lab.bench.restore(start)
    return seconds


def _seconds_left(lab: Lab) -> float:
    return min(lab.probe_deadline, lab.started + lab.budget_seconds) - lab.clock()


def _memorise(lab: Lab, samples: Samples, floor: Floor, start: Any) -> tuple[Overfit, Attempt]:
    goal = _goal(lab, samples, floor, start)
    # Half of the time for the user's rate, so that the search for a better one is not left out.
    half = lab.clock() + _seconds_left(lab) / 2
    lab.bench.restore(start)
    lr = use_working_rate(lab)
    own = _attempt(lab, samples, None, STEPS, goal, lambda: lab.clock() > half)
    if not own.run.losses:
        raise OutOfTime
    tries = [] if own.run.losses[-1] <= goal else _search(lab, samples, goal, start)
    tuned = min((a for a in tries if a.run.losses), key=lambda a: a.run.final, default=None)
    best = min((a for a in (own, tuned) if a), key=lambda a: a.run.final)
    decay = lab.bench.weight_decay if best.run.losses[-1] > goal else None
    trial = Overfit(
        samples=samples.count or 0,
        steps=STEPS,
        floor=floor.value or 0.0,
        floor_reason=floor.reason,
        losses=own.run.losses,
        lr=lr,
        tuned_lr=tuned.rate if tuned else None,
        tuned_losses=tuned.run.losses if tuned else (),
        floor_known=floor.value is not None,
        plain=floor.plain,
        dense=samples.dense,
        complete=own.run.losses[-1] <= goal or (not lab.time_is_up() and all(a.run.complete for a in tries)),
        spread=best.answers.spread if best.answers else None,
        noise=best.answers.noise if best.answers else None,
        constant=floor.constant,
        crowd=crowd_of(lab, samples, start),
        decay=decay,
        free_losses=_without_decay(lab, samples, goal, start) if decay else (),
    )
    return trial, best


def _without_decay(lab: Lab, samples: Samples, goal: float, start: Any) -> tuple[float, ...]:
    """Weight decay that outweighs what one batch asks for is the user's choice, and no fault of the model."""
    lab.bench.restore(start)
    use_working_rate(lab)
    lab.bench.scale_weight_decay(0.0)
    losses = memorise(lab, samples.batch, STEPS, lambda losses: losses[-1] <= goal, lab.time_is_up).losses
    lab.bench.restore(start)
    return losses


def _attempt(lab: Lab, samples: Samples, rate: float | None, steps: int, goal: float, stop: Callable[[], bool]) -> Attempt:
    run = memorise(lab, samples.batch, steps, lambda losses: losses[-1] <= goal, stop, rate=rate)
    missed = bool(run.losses) and run.losses[-1] > goal
    return Attempt(rate, run, answers_now(lab, samples) if missed else None)


def _goal(lab: Lab, samples: Samples, floor: Floor, start: Any) -> float:
    """The loss at which the batch counts as learned by heart; no loss where none can be named."""
    lab.bench.restore(start)
    lab.bench.set_training(True)
    first = lab.bench.loss(samples.batch)
    if not math.isfinite(first):
        raise Unsupported("the loss of the first samples is not a finite number")
    bottom = floor.value or 0.0
    return bottom + LEARNED * (first - bottom) if first > bottom else -math.inf


def _search(lab: Lab, samples: Samples, goal: float, start: Any) -> list[Attempt]:
    """At the rate of a range test on this batch, and at a safer one where that is not enough."""
    lab.bench.restore(start)
    found = sweep(lab, [samples.batch], lab.time_is_up)
    tries: list[Attempt] = []
    for rate in (found.suggested, found.suggested / SAFER) if found.suggested else ():
        lab.bench.restore(start)
        tries.append(_attempt(lab, samples, rate, SEARCH_STEPS, goal, lab.time_is_up))
        if tries[-1].run.losses and tries[-1].run.losses[-1] <= goal:
            break
    return tries


def _ablate(lab: Lab, samples: Samples, floor: Floor, start: Any, trial: Overfit, best: Attempt) -> Iterator[Observation]:
    """The same run with every sample's input replaced by that of the first."""
    try:
        blank = without_inputs(lab, samples)
    except Unsupported as reason:
        yield Absent(Ablation, str(reason))
        return
    lab.bench.restore(start)
    if best.rate is None:
        use_working_rate(lab)
    done = found_out(floor.value or 0.0, floor.constant, len(best.run.losses))
    run = memorise(lab, blank, max(STEPS, len(best.run.losses)), done, lab.time_is_up, rate=best.rate)
    if not run.complete or not run.losses:
        raise OutOfTime
    learned = trial.remaining(best.run.losses) <= LEARNED
    yield Ablation(
        steps=len(run.losses),
        losses=best.run.losses,
        blank_losses=run.losses,
        constant_floor=floor.constant,
        floor=floor.value,
        stalled=trial.complete and not learned,
    )
