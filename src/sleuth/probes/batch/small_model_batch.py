"""What a model with few parameters makes of a whole batch, and how far the answers to different samples lie apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts
from sleuth.core.trial import CrowdTrial
from sleuth.probes.batch.floors import floor_of
from sleuth.probes.lab.memorising import memorise
from sleuth.probes.lab.one_batch import Samples, change_arrays, distinct_rows, sample_count, take_rows
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.rates import sweep, use_working_rate
from sleuth.probes.lab.roles import answers

# A model that has room for fewer samples than this is also shown more of them than it could learn by heart.
SMALL_ROOM = 8
MOST = 512
# Samples a parameter: then a model explains little of them by chance, about as many times CHANCE as it has parameters a sample.
A_PARAMETER = 20
CHANCE = 2.0
STEPS = 200
# Of what one answer for all leaves: gaining as much shows that the samples do get through.
GAINED = 0.2


def crowd_of(lab: Lab, few: Samples, start: Any) -> CrowdTrial | None:
    """None where the model has room for enough samples anyway, or the loss tells nothing."""
    if few.count is None or few.count >= SMALL_ROOM:
        return None
    batch = _joined(lab)
    rows = distinct_rows(lab, batch)
    parameters = sum(int(np.prod(lab.bench.parameter(path).shape)) for path in lab.bench.paths())
    if rows is None or len(rows) < A_PARAMETER * parameters:
        return None
    rows = rows[:MOST]
    batch = take_rows(lab, batch, rows)
    lab.bench.restore(start)
    floor = floor_of(lab, batch, distinct=True)
    if floor.value is None or floor.constant is None or floor.constant <= floor.value:
        return None
    enough = floor.constant - GAINED * (floor.constant - floor.value)
    lab.bench.restore(start)
    rates = (None, sweep(lab, [batch], lab.time_is_up).suggested)
    best = float("inf")
    for rate in rates:
        lab.bench.restore(start)
        if rate is None:
            use_working_rate(lab)
        run = memorise(lab, batch, STEPS, lambda losses: losses[-1] < enough, lab.time_is_up, rate=rate)
        if not run.complete or not run.losses:
            return None
        best = min(best, run.final)
        if best < enough:
            break
    return CrowdTrial(len(rows), best, floor.constant, floor.value, chance=CHANCE * parameters / len(rows))


def _joined(lab: Lab) -> Parts:
    """As many batches in one as it takes; the first alone where they differ in form."""
    first, arrays, size = lab.batch, lab.adapter.is_array, sample_count(lab, lab.batch)
    others = lab.train.batches[1 : 1 + MOST // size] if size else []
    paths = {id(a): path for path, a in leaves(first.raw, arrays)}
    given = [a for part in (first.inputs, first.target) for _, a in leaves(part, arrays)]
    more = [dict(leaves(other.raw, arrays)) for other in others]
    more = [m for m in more if m.keys() == set(paths.values())]
    if not more or any(id(a) not in paths for a in given):
        return first

    def join(array: Any) -> Any:
        rest = [lab.adapter.values(m[paths[id(array)]]) for m in more]
        return lab.adapter.like(np.concatenate([lab.adapter.values(array), *rest]), array)

    try:
        return change_arrays(lab, first, join)
    except ValueError:  # padded to different lengths
        return first


@dataclass(frozen=True)
class Answers:
    """Root mean squares over the outputs, in evaluation mode."""

    spread: float  # between samples
    noise: float  # between passes over the same samples


def answers_now(lab: Lab, samples: Samples) -> Answers | None:
    lab.bench.set_training(False)
    try:
        passes = [[lab.adapter.values(a) for _, a in leaves(answers(lab, samples.batch), lab.adapter.is_array)] for _ in range(2)]
    except Exception:  # a step of the user's own may need training mode
        return None
    pairs = [(one.astype(np.float64), two.astype(np.float64)) for one, two in zip(*passes, strict=False)]
    pairs = [(a, b) for a, b in pairs if a.shape == b.shape and a.ndim and len(a) == samples.count and np.isfinite(a - b).all()]
    if not pairs:
        return None
    spread = max(float((a - a.mean(axis=0)).std()) for a, _ in pairs)
    return Answers(spread, max(float(np.sqrt(np.mean((a - b) ** 2) / 2)) for a, b in pairs))
