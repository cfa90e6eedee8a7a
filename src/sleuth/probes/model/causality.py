"""For models that are asked for elements of their own input: changes later positions and looks which outputs move."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Causality
from sleuth.probes.data.target_shift import FOUND
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
    path, ahead, axis = _asked(lab)
    few = first_samples(lab, lab.batch, SAMPLES) if axis == 1 else lab.batch
    start = lab.bench.snapshot()
    try:
        yield Passes(Rerun(lab, start, few), path, axis).measure(ahead)
    finally:
        lab.bench.restore(start)


def _asked(lab: Lab) -> tuple[str, int, int]:
    """The input whose elements are the targets, how far ahead they lie, and the axis of the positions."""
    if FOUND in lab.facts:
        path, shift = lab.facts[FOUND]
        if shift.best is not None and shift.best >= 0:
            return path, shift.best, shift.axis
    return _next_of_one(lab, first_samples(lab, lab.batch, SAMPLES)), 1, 1


def _next_of_one(lab: Lab, batch: Parts) -> str:
    """Where the loss cannot be heard: the one input whose next element is the target; a mask or lengths may stand beside it."""
    targets = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    if len(targets) != 1:
        raise Unsupported("there is no single target")
    given = input_arrays(lab, batch.inputs)
    found = [path for path, x in given.items() if _predicts_next(x, targets[0])]
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


@dataclass(frozen=True)
class Passes:
    """Through the model, with other elements at some positions of one input; `axis` counts its positions."""

    rerun: Rerun
    path: str
    axis: int

    def measure(self, ahead: int) -> Causality:
        x = self._turned(input_arrays(self.rerun.lab, self.rerun.batch.inputs)[self.path])
        before = self._outputs(x)
        if not np.array_equal(before, self._outputs(x)):
            raise Unsupported("two passes over the same batch give different outputs, even in evaluation mode")
        length, spread = x.shape[1], float(before.std()) or 1.0
        leaking, change, reach, own = 0, 0.0, length, []
        for cut in np.unique(np.linspace(1, length - 1, CUTS).astype(int)):
            moves = self._moves(x, before, cut) / spread
            own.append(moves[cut] > MOVED)
            # Who is asked for what lies further ahead may see what comes before that.
            earlier = moves[: cut + 1 - max(ahead, 1)]
            hit = np.flatnonzero(earlier > MOVED)
            if hit.size:
                leaking = max(leaking, int(hit.size))
                change = max(change, float(earlier.max()))
                reach = min(reach, int(cut - hit.max()))
        if not leaking and not any(own) and ahead:
            raise Unsupported("no output moves with the inputs before training, so nothing can be seen to leak")
        return Causality(length, leaking, change, reach if leaking else 0, ahead, float(np.mean(own)))

    def _moves(self, x: np.ndarray, before: np.ndarray, cut: int) -> np.ndarray:
        """How far the output at each position moves with other elements from `cut` on."""
        other = x.copy()
        other[:, cut:] = np.roll(x[:, cut:], 1, axis=0) if len(x) > 1 else x[:, cut:][:, ::-1]
        return np.abs(self._outputs(other) - before).reshape(len(x), x.shape[1], -1).max(axis=(0, 2))

    def _outputs(self, x: np.ndarray) -> np.ndarray:
        """The model's answers with samples and positions in front."""
        shape = self._turned(x).shape
        inputs = changed(self.rerun.lab, self.rerun.batch.inputs, lambda p, v: self._turned(x) if p == self.path else v)
        for values in self.rerun(inputs).values():
            if values.shape[:2] == shape[:2]:
                return self._turned(values)
            if values.shape[0] == shape[0] * shape[1]:
                return self._turned(values.reshape(*shape[:2], -1))
        raise Unsupported("the output has no axis of positions")

    def _turned(self, values: np.ndarray) -> np.ndarray:
        return values.swapaxes(0, 1) if self.axis == 0 else values
