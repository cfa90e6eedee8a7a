"""For models that predict the next element: changes later positions and looks whether earlier outputs move."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Causality
from sleuth.probes.lab.changed_inputs import Rerun, changed, first_samples, input_arrays
from sleuth.probes.lab.probe import Lab, probe

SAMPLES = 8
# So many cut points tell where a leak begins; every position would cost a forward each.
CUTS = 6
# Share of targets that must be the next input before the task counts as predicting it.
NEXT = 0.9
# Float rounding moves outputs by about 1e-6 of their spread; a leak moves them by whole percents.
MOVED = 1e-3


@probe(title="Looking for future leaks", stage=Stage.MODEL, emits=(Causality,), needs=("forward",), rank=60)
def causality(lab: Lab) -> Iterator[Observation]:
    few = first_samples(lab, lab.batch, SAMPLES)
    path, x = _sequence(lab, few)
    start = lab.bench.snapshot()
    try:
        yield _measure(Rerun(lab, start, few), path, x)
    finally:
        lab.bench.restore(start)


def _sequence(lab: Lab, batch: Parts) -> tuple[str, np.ndarray]:
    """The one input whose next element is the target; a mask or lengths may stand beside it."""
    targets = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    if len(targets) != 1:
        raise Unsupported("there is no single target")
    given = input_arrays(lab, batch.inputs)
    found = [(path, x) for path, x in given.items() if _predicts_next(x, targets[0])]
    if len(found) != 1:
        raise Unsupported("the targets are not the inputs shifted by one, so nothing says that the model must be causal")
    return found[0]


def _predicts_next(x: np.ndarray, y: np.ndarray) -> bool:
    if x.ndim < 2 or x.shape[1] < 4 or y.shape != x.shape:
        return False
    # Positions that the loss leaves out hold a number below zero.
    counted = np.ones(y.shape, bool) if y.dtype.kind == "f" else y >= 0
    same_next = np.isclose(y[:, :-1], x[:, 1:])[counted[:, :-1]]
    same_here = np.isclose(y, x)[counted]
    return bool(same_next.size and same_next.mean() > NEXT and same_here.mean() < NEXT)


def _measure(rerun: Rerun, path: str, x: np.ndarray) -> Causality:
    length = x.shape[1]
    before = _outputs(rerun, path, x)
    if not np.array_equal(before, _outputs(rerun, path, x)):
        raise Unsupported("two passes over the same batch give different outputs, even in evaluation mode")
    spread = float(before.std()) or 1.0
    leaking, change, reach = 0, 0.0, length
    for cut in np.unique(np.linspace(1, length - 1, CUTS).astype(int)):
        other = x.copy()
        other[:, cut:] = np.roll(x[:, cut:], 1, axis=0) if len(x) > 1 else x[:, cut:][:, ::-1]
        moves = np.abs(_outputs(rerun, path, other) - before)[:, :cut].reshape(len(x), cut, -1).max(axis=(0, 2)) / spread
        hit = np.flatnonzero(moves > MOVED)
        if hit.size:
            leaking = max(leaking, int(hit.size))
            change = max(change, float(moves.max()))
            reach = min(reach, int(cut - hit.max()))
    return Causality(length, leaking, change, reach if leaking else 0)


def _outputs(rerun: Rerun, path: str, x: np.ndarray) -> np.ndarray:
    """The model's answers with samples and positions in front."""
    inputs = changed(rerun.lab, rerun.batch.inputs, lambda p, v: x if p == path else v)
    for values in rerun(inputs).values():
        if values.shape[:2] == x.shape[:2]:
            return values
        if values.shape[0] == x.shape[0] * x.shape[1]:
            return values.reshape(*x.shape[:2], -1)
    raise Unsupported("the output has no axis of positions")
