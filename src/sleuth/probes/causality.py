"""For models that predict the next element: changes later positions and looks whether earlier outputs move."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.tree import leaves
from sleuth.core.trial import Causality
from sleuth.probes.probe import Lab, probe
from sleuth.probes.roles import answers, with_inputs

SAMPLES = 8
# So many cut points tell where a leak begins; every position would cost a forward each.
CUTS = 6
# Share of targets that must be the next input before the task counts as predicting it.
NEXT = 0.9
# Float rounding moves outputs by about 1e-6 of their spread; a leak moves them by whole percents.
MOVED = 1e-3


@probe(title="Looking for future leaks", stage=Stage.MODEL, emits=(Causality,), needs=("forward",), rank=60)
def causality(lab: Lab) -> Iterator[Observation]:
    inputs = _array(lab, lab.batch.inputs, "the model has several inputs")
    target = _array(lab, lab.batch.target, "there is no single target")
    x, y = lab.adapter.values(inputs)[:SAMPLES], lab.adapter.values(target)[:SAMPLES]
    if not _predicts_next(x, y):
        raise Unsupported("the targets are not the inputs shifted by one, so nothing says that the model must be causal")
    bench = lab.bench
    start = bench.snapshot()
    try:
        bench.set_training(False)
        yield _measure(lab, x, inputs)
    finally:
        bench.restore(start)


def _array(lab: Lab, tree: Any, otherwise: str) -> Any:
    arrays = [a for _, a in leaves(tree, lab.adapter.is_array)]
    if len(arrays) != 1:
        raise Unsupported(otherwise)
    return arrays[0]


def _predicts_next(x: np.ndarray, y: np.ndarray) -> bool:
    if x.ndim < 2 or x.shape[1] < 4 or y.shape[:2] != x.shape[:2]:
        return False
    same_next = np.mean(np.isclose(y[:, :-1], x[:, 1:])) if y.shape == x.shape else 0.0
    same_here = np.mean(np.isclose(y, x)) if y.shape == x.shape else 1.0
    return bool(same_next > NEXT and same_here < NEXT)


def _measure(lab: Lab, x: np.ndarray, like: Any) -> Causality:
    length = x.shape[1]
    before = _outputs(lab, x, like)
    spread = float(before.std()) or 1.0
    leaking, change, reach = 0, 0.0, length
    cuts = np.unique(np.linspace(1, length - 1, CUTS).astype(int))
    for cut in cuts:
        lab.tick()
        changed = x.copy()
        changed[:, cut:] = np.roll(x[:, cut:], 1, axis=0) if len(x) > 1 else x[:, cut:][:, ::-1]
        moves = np.abs(_outputs(lab, changed, like) - before)[:, :cut].reshape(len(x), cut, -1).max(axis=(0, 2)) / spread
        hit = np.flatnonzero(moves > MOVED)
        if hit.size:
            leaking = max(leaking, int(hit.size))
            change = max(change, float(moves.max()))
            reach = min(reach, int(cut - hit.max()))
    return Causality(length, leaking, change, reach if leaking else 0)


def _outputs(lab: Lab, x: np.ndarray, like: Any) -> np.ndarray:
    """The model's answers with samples and positions in front."""
    out = answers(lab, with_inputs(lab, lab.batch, lab.adapter.like(x, like)))
    arrays = [lab.adapter.values(a) for _, a in leaves(out, lab.adapter.is_array)]
    for values in arrays:
        if values.shape[:2] == x.shape[:2]:
            return values.astype(np.float64)
        if values.shape[0] == x.shape[0] * x.shape[1]:
            return values.reshape(*x.shape[:2], -1).astype(np.float64)
    raise Unsupported("the output has no axis of positions")
