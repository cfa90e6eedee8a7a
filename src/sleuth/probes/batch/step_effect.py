"""One optimiser step, and what it changed."""

import math
from collections.abc import Iterator

import numpy as np

from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import StepEffect
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.rates import use_working_rate

# Some optimisers only gather at first; a few more steps tell.
SECOND_LOOK = 4


@probe(
    title="One optimiser step",
    stage=Stage.BATCH,
    rank=5,
    emits=(StepEffect,),
    needs=("forward", "loss", "backward"),
    share=0.05,
)
def step_effect(lab: Lab) -> Iterator[Observation]:
    start = lab.bench.snapshot()
    try:
        use_working_rate(lab)
        lab.bench.set_training(True)
        before = _weights(lab)
        gradients = lab.bench.gradients(lab.batch)
        zero = tuple(p for p, g in gradients.by_path.items() if g is None or not lab.adapter.values(g).any())
        lab.bench.apply(lab.batch)
        for _ in range(SECOND_LOOK):
            if not _all_equal(before, _weights(lab)):
                break
            lab.tick()
            lab.bench.step(lab.batch)
        after = _weights(lab)
        yield StepEffect(
            parameters=len(before),
            unchanged=tuple(p for p in before if np.array_equal(before[p], after[p])),
            gradients_zero=zero,
            loss_before=gradients.loss,
            loss_after=lab.bench.loss(lab.batch),
            relative_change=_change(before, after),
        )
    finally:
        lab.bench.restore(start)


def _weights(lab: Lab) -> dict[str, np.ndarray]:
    return {path: np.array(lab.adapter.values(lab.bench.parameter(path))) for path in lab.bench.paths()}


def _all_equal(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(before[path], after[path]) for path in before)


def _change(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> float:
    moved = sum(float(np.square(after[p].astype(np.float64) - before[p]).sum()) for p in before)
    size = sum(float(np.square(before[p].astype(np.float64)).sum()) for p in before)
    return math.sqrt(moved / size) if size > 0 else math.sqrt(moved)
