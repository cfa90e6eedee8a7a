"""The few samples that one-batch experiments use, and what can be done to them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.subject import Parts
from sleuth.probes.fingerprints.fingerprint import fingerprints
from sleuth.probes.lab.probe import Lab

# Enough to need more than one answer, few enough to be learned by heart in some hundred steps.
MOST_SAMPLES = 16
# Of images, sequences and other targets with many numbers a sample; an autoencoder's code must hold them all.
MOST_DENSE_SAMPLES = 4
DENSE = 16
# A model can be asked for half as many numbers as it has parameters: a line through two points, not through ten.
PARAMETERS_PER_NUMBER = 2
# A class is one number to learn, but softmax needs some parameters for each other class; beyond ten they share.
MOST_NUMBERS_PER_CLASS = 10


@dataclass(frozen=True)
class Samples:
    """`count` is None where the batch cannot be cut into samples and was taken whole."""

    batch: Parts
    count: int | None
    distinct: bool  # no two samples have equal inputs
    dense: bool = False  # each sample asks for many numbers at once


def few_samples(lab: Lab, most: int = MOST_SAMPLES) -> Samples:
    """Distinct samples of the first batch, no more than the model has room for."""
    whole = lab.batch
    rows = distinct_rows(lab, whole)
    if rows is None:
        return Samples(whole, None, distinct=False, dense=_is_dense(lab))
    room = min(_room(lab), most)
    for wanted in sorted({min(len(rows), room), min(len(rows), max(room, MOST_DENSE_SAMPLES))}):
        chosen = take_rows(lab, whole, rows[:wanted])
        if _runs(lab, chosen):
            return Samples(chosen, wanted, distinct=True, dense=_is_dense(lab))
    size = sample_count(lab, whole)
    return Samples(whole, size, distinct=len(rows) == size, dense=_is_dense(lab))


def _runs(lab: Lab, batch: Parts) -> bool:
    """Batch normalisation refuses a single sample; some models are built for one batch size."""
    lab.bench.set_training(True)
    try:
        return bool(np.isfinite(lab.bench.loss(batch)))
    except Exception:
        return False


def sample_count(lab: Lab, batch: Parts) -> int | None:
    """The size of the first axis that all arrays share; None where they share none, as in graphs and packed sequences."""
    shapes = [a.shape for tree in (batch.inputs, batch.target, batch.raw) for _, a in leaves(tree, lab.adapter.is_array)]
    sizes = {shape[0] if len(shape) else None for shape in shapes}
    return sizes.pop() if len(sizes) == 1 else None


def distinct_rows(lab: Lab, batch: Parts) -> np.ndarray | None:
    """The first of all samples with equal inputs, in order; None where the batch cannot be cut into samples."""
    if sample_count(lab, batch) is None:
        return None
    arrays = [lab.adapter.values(a) for _, a in leaves(batch.inputs, lab.adapter.is_array)]
    _, first = np.unique(fingerprints(arrays)[0], return_index=True)
    return np.sort(first)


def take_rows(lab: Lab, batch: Parts, rows: np.ndarray) -> Parts:
    return change_arrays(lab, batch, lambda array: lab.adapter.like(lab.adapter.values(array)[rows], array))


def change_arrays(lab: Lab, batch: Parts, change: Callable[[Any], Any]) -> Parts:
    """The same batch with every array changed, wherever it stands."""
    known: dict[int, Any] = {}

    def once(array: Any) -> Any:
        if id(array) not in known:
            known[id(array)] = change(array)
        return known[id(array)]

    return Parts(*(map_arrays(part, once, lab.adapter.is_array) for part in (batch.inputs, batch.target, batch.raw)))


def change_inputs(lab: Lab, batch: Parts, change: Callable[[Any], Any]) -> Parts:
    return _change_side(lab, batch, batch.inputs, change)


def change_target(lab: Lab, batch: Parts, change: Callable[[Any], Any]) -> Parts:
    return _change_side(lab, batch, batch.target, change)


def _change_side(lab: Lab, batch: Parts, side: Any, change: Callable[[Any], Any]) -> Parts:
    """Inputs or target changed, also in the raw batch, which a step of the user's own reads."""
    is_array = lab.adapter.is_array
    mine = {id(a) for _, a in leaves(side, is_array)}
    both = {id(a) for _, a in leaves(batch.inputs, is_array)} & {id(a) for _, a in leaves(batch.target, is_array)}
    if lab.subject.step is not None:
        raw = {id(a) for _, a in leaves(batch.raw, is_array)}
        if both:
            raise Unsupported("the step compares the outputs with the input itself: one cannot be changed without the other")
        if batch.target is None or not mine <= raw:
            raise Unsupported("with a step of your own, inputs and target of a batch cannot be told apart")
    made = {id(a): change(a) for _, a in leaves(side, is_array)}

    def swap(tree: Any) -> Any:
        return map_arrays(tree, lambda a: made.get(id(a), a), is_array)

    if side is batch.inputs:
        return Parts(swap(batch.inputs), batch.target, swap(batch.raw))
    return Parts(batch.inputs, swap(batch.target), swap(batch.raw))


def _room(lab: Lab) -> int:
    """How many samples this model can be asked to learn by heart."""
    parameters = sum(int(np.prod(lab.bench.parameter(path).shape)) for path in lab.bench.paths())
    outputs = _outputs(lab)
    targets = [lab.adapter.values(a) for _, a in leaves(lab.batch.target, lab.adapter.is_array)]
    if any(t.dtype.kind in "iu" for t in targets):
        outputs = min(outputs, MOST_NUMBERS_PER_CLASS * _numbers(lab))
    most = MOST_DENSE_SAMPLES if _is_dense(lab) else MOST_SAMPLES
    return int(np.clip(parameters // (PARAMETERS_PER_NUMBER * outputs), 1, most))


def _is_dense(lab: Lab) -> bool:
    return _numbers(lab) > DENSE


def _numbers(lab: Lab) -> int:
    """How many numbers a sample's target holds; those of its output where no target is known."""
    shapes = [a.shape for _, a in leaves(lab.batch.target, lab.adapter.is_array)]
    return max((int(np.prod(shape[1:])) for shape in shapes), default=_outputs(lab))


def _outputs(lab: Lab) -> int:
    shapes = [s for s in lab.facts.get("output_shape", []) if len(s) > 1]
    return max((int(np.prod(s[1:])) for s in shapes), default=1)
