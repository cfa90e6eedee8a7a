"""For models that predict the next element: changes later positions and looks whether earlier outputs move."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Causality
from sleuth.probes.data.target_shift import axis_of_positions, is_ahead, over_an_input
from sleuth.probes.lab.changed_inputs import Rerun, changed, first_samples, input_arrays
from sleuth.probes.lab.probe import Lab, probe

SAMPLES = 8
# So many cut points tell where a leak begins; every position would cost a forward each.
CUTS = 6
# Share of targets that must be the next input before the task counts as predicting it.
NEXT = 0.9
# Float rounding moves outputs by about 1e-6 of their spread; a leak moves them by whole percents.
MOVED = 1e-3
SHORTEST = 4
NOT_SHIFTED = "the targets are not the inputs shifted by one, so nothing says that the model must be causal"


@probe(title="Looking for future leaks", stage=Stage.MODEL, emits=(Causality,), needs=("forward",), rank=60)
def causality(lab: Lab) -> Iterator[Observation]:
    start = lab.bench.snapshot()
    try:
        batch, sequence = _sequence(lab)
        yield _measure(sequence, Rerun(lab, start, batch))
    finally:
        lab.bench.restore(start)


@dataclass(frozen=True)
class Sequence:
    """One input, whose positions lie along `axis`."""

    path: str
    values: np.ndarray
    axis: int = 1

    @property
    def turned(self) -> np.ndarray:
        """Samples, positions."""
        return self.values.swapaxes(0, 1) if self.axis == 0 else self.values

    def outputs(self, rerun: Rerun, x: np.ndarray) -> np.ndarray:
        """The model's answers to `x`, samples and positions, with the same in front."""
        given = x.swapaxes(0, 1) if self.axis == 0 else x
        inputs = changed(rerun.lab, rerun.batch.inputs, lambda p, v: given if p == self.path else v)
        for values in rerun(inputs).values():
            if values.shape[:2] == given.shape[:2]:
                return values.swapaxes(0, 1) if self.axis == 0 else values
            if values.shape[0] == given.shape[0] * given.shape[1]:
                flat = values.reshape(*given.shape[:2], -1)
                return flat.swapaxes(0, 1) if self.axis == 0 else flat
        raise Unsupported("the output has no axis of positions")


def _sequence(lab: Lab) -> tuple[Parts, Sequence]:
    """The one input whose next element is the target; a mask or lengths may stand beside it."""
    batch = first_samples(lab, lab.batch, SAMPLES)
    targets = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    given = input_arrays(lab, batch.inputs)
    found = [(path, x) for path, x in given.items() if len(targets) == 1 and _predicts_next(x, targets[0])]
    if len(found) == 1:
        return batch, Sequence(*found[0])
    return _compared_with_what_comes(lab)


def _compared_with_what_comes(lab: Lab) -> tuple[Parts, Sequence]:
    """Targets that were flattened, or that the model shifts by itself: what the loss function is given tells."""
    try:
        lab.bench.set_training(False)
        batch, laid = over_an_input(lab, SAMPLES)
    except Exception:  # a loss that cannot be computed is said elsewhere
        raise Unsupported(NOT_SHIFTED) from None
    axis = axis_of_positions(laid)
    if not is_ahead(laid, NEXT) or laid.inputs.shape[axis] < SHORTEST:
        raise Unsupported(NOT_SHIFTED)
    return batch, Sequence(laid.path, laid.inputs, axis)


def _predicts_next(x: np.ndarray, y: np.ndarray) -> bool:
    if x.ndim < 2 or x.shape[1] < SHORTEST or y.shape != x.shape:
        return False
    # Positions that the loss leaves out hold a number below zero.
    counted = np.ones(y.shape, bool) if y.dtype.kind == "f" else y >= 0
    same_next = np.isclose(y[:, :-1], x[:, 1:])[counted[:, :-1]]
    same_here = np.isclose(y, x)[counted]
    return bool(same_next.size and same_next.mean() > NEXT and same_here.mean() < NEXT)


def _measure(sequence: Sequence, rerun: Rerun) -> Causality:
    x = sequence.turned
    length = x.shape[1]
    before = sequence.outputs(rerun, x)
    if not np.array_equal(before, sequence.outputs(rerun, x)):
        raise Unsupported("two passes over the same batch give different outputs, even in evaluation mode")
    spread = float(before.std()) or 1.0
    leaking, change, reach = 0, 0.0, length
    for cut in np.unique(np.linspace(1, length - 1, CUTS).astype(int)):
        other = x.copy()
        other[:, cut:] = np.roll(x[:, cut:], 1, axis=0) if len(x) > 1 else x[:, cut:][:, ::-1]
        moves = np.abs(sequence.outputs(rerun, other) - before)[:, :cut].reshape(len(x), cut, -1).max(axis=(0, 2)) / spread
        hit = np.flatnonzero(moves > MOVED)
        if hit.size:
            leaking = max(leaking, int(hit.size))
            change = max(change, float(moves.max()))
            reach = min(reach, int(cut - hit.max()))
    return Causality(length, leaking, change, reach if leaking else 0)
