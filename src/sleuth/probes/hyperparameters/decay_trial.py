"""Trains with the user's weight decay and without any, from the same start on the same batches."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import DecayTrial
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.rates import use_working_rate

# Over which decay and gradient are set against each other.
PULLED_STEPS = 10
# Usual decays move weights a hundredth to a quarter as far as gradients do at the start; from here on it is worth a trial.
WORTH_A_TRIAL = 0.3
STEPS = 300
JUDGED_BATCHES = 8


@dataclass(frozen=True)
class Run:
    losses: tuple[float, ...]
    end: np.ndarray | None  # loss of each judging batch; None: it blew up
    validation: float | None


@probe(
    title="Training without weight decay",
    stage=Stage.HYPERPARAMETERS,
    rank=30,
    emits=(DecayTrial,),
    needs=("forward", "loss", "backward"),
    share=0.12,
)
def decay_trial(lab: Lab) -> Iterator[Observation]:
    decay = lab.bench.weight_decay
    if decay is None:
        given = lab.bench.lr is not None
        raise Unsupported("the optimiser names no weight decay" if given else "no optimiser was given")
    start = lab.bench.snapshot()
    try:
        pull = _pull(lab, start) if decay > 0 else 0.0
        yield _try(lab, start, decay, pull) if pull > WORTH_A_TRIAL else DecayTrial(decay, pull)
    finally:
        lab.bench.set_training(True)
        lab.bench.restore(start)


def _try(lab: Lab, start: Any, decay: float, pull: float) -> DecayTrial:
    trained, judged = _data(lab.train.batches)
    lab.bench.restore(start)
    before = _losses(lab, judged)
    own = _run(lab, start, 1.0, trained, judged)
    later = lab.bench.snapshot()
    later_pull = None if own.end is None else _pull(lab, later)
    free = _run(lab, start, 0.0, trained, judged)
    error = None
    if own.end is not None and free.end is not None and len(judged) > 1:
        error = float((own.end - free.end).std(ddof=1) / math.sqrt(len(judged)))
    return DecayTrial(
        decay,
        pull,
        later_pull,
        STEPS,
        own.losses,
        free.losses,
        float(before.mean()),
        None if own.end is None else float(own.end.mean()),
        None if free.end is None else float(free.end.mean()),
        error,
        own.validation,
        free.validation,
        held_out=len(trained) < len(lab.train.batches),
    )


def _run(lab: Lab, start: Any, factor: float, trained: list[Parts], judged: list[Parts]) -> Run:
    lab.bench.restore(start)
    use_working_rate(lab)
    lab.bench.scale_weight_decay(factor)
    lab.bench.set_training(True)
    losses: list[float] = []
    for step in range(STEPS):
        lab.tick()
        loss = lab.bench.step(trained[step % len(trained)])
        if not math.isfinite(loss):
            return Run(tuple(losses), None, None)
        losses.append(loss)
    end = _losses(lab, judged)
    validation = None
    if lab.validation is not None and lab.validation.batches:
        validation = float(_losses(lab, lab.validation.batches[:JUDGED_BATCHES]).mean())
    return Run(tuple(losses), end if np.all(np.isfinite(end)) else None, validation)


def _losses(lab: Lab, batches: list[Parts]) -> np.ndarray:
    """In evaluation mode: dropout's noise would hide what decay does."""
    lab.bench.set_training(False)
    losses = np.array([lab.bench.loss(batch) for batch in batches])
    lab.bench.set_training(True)
    return losses


def _data(batches: list[Parts]) -> tuple[list[Parts], list[Parts]]:
    """Batches to judge by that are not trained on, where there are enough: decay is there for them."""
    if len(batches) < 3 * JUDGED_BATCHES:
        return batches, batches[:JUDGED_BATCHES]
    return batches[:-JUDGED_BATCHES], batches[-JUDGED_BATCHES:]


def _pull(lab: Lab, start: Any) -> float:
    """How far the weights end from where they would without decay, over how far they went without.

    Only weights that a gradient moves count: Adam makes full steps of any decay where there is no gradient, at an input
    that is always zero, and nobody minds.
    """
    ends = []
    for factor in (1.0, 0.0):
        lab.bench.restore(start)
        use_working_rate(lab)
        lab.bench.scale_weight_decay(factor)
        lab.bench.set_training(True)
        before = _weights(lab)
        for step in range(PULLED_STEPS):
            lab.tick()
            lab.bench.step(lab.train.batches[step % len(lab.train.batches)])
        ends.append(_weights(lab))
    reached = ends[1] != before
    moved = float(np.linalg.norm((ends[1] - before)[reached]))
    pulled = float(np.linalg.norm((ends[0] - ends[1])[reached]))
    return pulled / moved if moved > 0 and math.isfinite(pulled) else math.inf


def _weights(lab: Lab) -> np.ndarray:
    arrays = [lab.adapter.values(lab.bench.parameter(path)).astype(np.float64).ravel() for path in lab.bench.paths()]
    return np.concatenate(arrays)
