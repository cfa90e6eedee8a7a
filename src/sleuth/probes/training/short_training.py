"""A short training on a copy, watched: losses, gradients, weights and updates over the steps."""

import math
from collections.abc import Generator, Iterator

import numpy as np

from sleuth.core.observation import Evaluation, Frame, Observation, Role, Step, Units
from sleuth.core.reading.batch_facts import class_labels
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.statistics import norm_of
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.rates import use_working_rate
from sleuth.probes.lab.roles import answers

STEPS = 150
# Statistics of all gradients cost about as much as a step of a large model.
MEASURED_EVERY = 5
# Weights and updates change slowly, and an update needs a copy of all weights.
WEIGHED_EVERY = 25
EVALUATED_BATCHES = 8
# A unit that fires rarely may miss one batch.
UNIT_BATCHES = 4


@probe(
    title="A short training",
    stage=Stage.TRAINING,
    rank=10,
    emits=(Step, Role.UPDATE, Evaluation),
    needs=("forward", "loss", "backward"),
    share=0.25,
)
def short_training(lab: Lab) -> Iterator[Observation]:
    start = lab.bench.snapshot()
    try:
        lr = use_working_rate(lab)
        lab.bench.set_training(True)
        last = 0
        for last in range(1, STEPS + 1):
            batch = lab.train.batches[(last - 1) % len(lab.train.batches)]
            loss = yield from _step(lab, batch, last, lr)
            if loss is None or lab.time_is_up():
                break
        if loss is not None:
            yield from _evaluate(lab, last)
        if loss is not None and not lab.time_is_up():
            yield from _units(lab, last)
    finally:
        lab.bench.restore(start)


def _step(lab: Lab, batch: Parts, step: int, lr: float | None) -> Generator[Observation, None, float | None]:
    """Returns the loss; None when it is not finite."""
    gradients = lab.bench.gradients(batch)
    if not math.isfinite(gradients.loss):
        yield Step(step, None, lr)
        return None
    norm = None
    if step <= MEASURED_EVERY or step % MEASURED_EVERY == 0:
        reached = {path: g for path, g in gradients.by_path.items() if g is not None}
        table = lab.adapter.measure(list(reached.values()))
        norm = norm_of(table)
        yield Frame(step, Role.GRADIENT, tuple(reached), table)
    yield Step(step, gradients.loss, lr, gradient_norm=norm)
    if step == 1 or step % WEIGHED_EVERY == 0:
        yield from _weighed_step(lab, batch, step)
    else:
        lab.bench.apply(batch)
    return gradients.loss


def _weighed_step(lab: Lab, batch: Parts, step: int) -> Iterator[Observation]:
    paths = lab.bench.paths()
    before = [np.array(lab.adapter.values(lab.bench.parameter(p))) for p in paths]
    lab.bench.apply(batch)
    after = [lab.bench.parameter(p) for p in paths]
    changes = [lab.adapter.values(a) - b for a, b in zip(after, before, strict=True)]
    yield Frame(step, Role.WEIGHT, paths, lab.adapter.measure(after))
    yield Frame(step, Role.UPDATE, paths, lab.adapter.measure(changes))


def _evaluate(lab: Lab, step: int) -> Iterator[Observation]:
    lab.bench.set_training(False)
    for readings in (lab.train, lab.validation):
        if readings is not None and readings.batches:
            yield from _evaluation(lab, readings, step)
    lab.bench.set_training(True)


def _evaluation(lab: Lab, readings: Readings, step: int) -> Iterator[Observation]:
    batches = readings.batches[: 1 if lab.time_is_up() else EVALUATED_BATCHES]
    losses = [lab.bench.loss(batch) for batch in batches]
    if not np.all(np.isfinite(losses)):
        return
    metrics = {"loss": float(np.mean(losses))}
    right = [r for batch in batches for r in _right(lab, batch)]
    if right:
        metrics["accuracy"] = float(np.mean(right))
    yield Evaluation(step, readings.split, metrics)


def _right(lab: Lab, batch: Parts) -> list[bool]:
    """Sample by sample, where the model gives one score a class; empty where it does something else."""
    labels = class_labels(batch.target, lab.adapter)
    if labels is None:
        return []
    outputs = [lab.adapter.values(a) for _, a in leaves(answers(lab, batch), lab.adapter.is_array)]
    if len(outputs) != 1 or outputs[0].ndim != 2 or len(outputs[0]) != len(labels) or outputs[0].shape[1] < 2:
        return []
    return list(outputs[0].argmax(axis=1) == labels)


def _units(lab: Lab, step: int) -> Iterator[Observation]:
    for batch in lab.train.batches[:UNIT_BATCHES]:
        yield from (o for o in lab.bench.observe(batch, step) if isinstance(o, Units))
