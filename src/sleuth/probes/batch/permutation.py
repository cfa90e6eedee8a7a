"""The loss of a batch whose samples got each other's targets."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bench, Substitutes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves, map_arrays
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import TargetPermutation
from sleuth.probes.lab.one_batch import change_target, sample_count
from sleuth.probes.lab.probe import Lab, OutOfTime, probe

PERMUTATIONS = 4
REPLACEMENTS = 2
# Sums in another order differ by this much in float32.
ROUNDING = 1e-6
SAME_GRADIENT = 1e-4
WIDE_ROUNDING = 1e-12
# Of the largest output: samples whose answers differ by less cannot show a difference of their targets.
DIFFERENT = 1e-6


@probe(
    title="Swapping targets between samples",
    stage=Stage.BATCH,
    rank=6,
    emits=(TargetPermutation,),
    needs=("forward", "loss", "backward"),
    share=0.05,
)
def permutation(lab: Lab) -> Iterator[Observation]:
    batch = lab.batch
    size = _samples_with_targets(lab, batch)
    start = lab.bench.snapshot()
    try:
        loss, again = _loss(lab, batch, start), _loss(lab, batch, start)
        rounding = abs(loss - again) + ROUNDING * abs(loss)
        rng = lab.rng
        shuffled = [_with_targets(lab, batch, rng.permutation(size)) for _ in range(PERMUTATIONS)]
        permuted = tuple(_loss(lab, other, start) for other in shuffled)
        alike = [_with_targets(lab, batch, np.full(size, row)) for row in _first_of_each(lab, batch)[:REPLACEMENTS]]
        replaced = tuple(_loss(lab, other, start) for other in alike)
        differ = False
        if all(abs(other - loss) <= rounding for other in permuted + replaced):
            _refuse_unsupervised(lab, batch, size)
            others = [*shuffled, *alike]
            differ = _gradients_differ(lab, batch, others, start) or _differ_in_float64(lab, batch, others, start)
        paired = None
        if all(abs(other - loss) <= rounding for other in permuted) and not differ:
            paired = _paired(lab, batch, shuffled, start)
        distinct = len(_first_of_each(lab, batch))
        yield TargetPermutation(loss, permuted, distinct, rounding, replaced, differ, paired)
    finally:
        lab.bench.restore(start)


def _samples_with_targets(lab: Lab, batch: Parts) -> int:
    arrays = [a for _, a in leaves(batch.target, lab.adapter.is_array)]
    if not arrays:
        raise Unsupported("no target could be told from the inputs")
    size = sample_count(lab, batch)
    if size is None:
        raise Unsupported("the batch cannot be cut into samples")
    if len(_first_of_each(lab, batch)) < 2:
        raise Unsupported("all samples of the batch have the same target")
    return size


def _first_of_each(lab: Lab, batch: Parts) -> np.ndarray:
    """The first sample of each different target."""
    arrays = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    rows = np.concatenate([a.reshape(len(a), -1).astype(np.float64) for a in arrays], axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return np.sort(first)


def _with_targets(lab: Lab, batch: Parts, rows: np.ndarray) -> Parts:
    return change_target(lab, batch, lambda array: lab.adapter.like(lab.adapter.values(array)[rows], array))


def _loss(lab: Lab, batch: Parts, start: Any) -> float:
    """From the same random state each time: dropout or sampling in the loss must not look like an effect."""
    lab.tick()
    lab.bench.restore(start)
    lab.bench.set_training(False)
    return lab.bench.loss(batch)


def _gradients_differ(lab: Lab, batch: Parts, others: list[Parts], start: Any) -> bool:
    """A last layer of zeros gives the same loss whatever the targets are; its gradient tells."""

    def gradients(of: Parts) -> list[np.ndarray]:
        lab.bench.restore(start)
        lab.bench.set_training(False)
        found = lab.bench.gradients(of).by_path.values()
        return [np.array(lab.adapter.values(g), dtype=np.float64) for g in found if g is not None]

    own = gradients(batch)
    scale = sum(float(np.abs(g).sum()) for g in own)
    for other in others:
        lab.tick()
        theirs = gradients(other)
        gap = sum(float(np.abs(a - b).sum()) for a, b in zip(own, theirs, strict=False))
        if len(own) != len(theirs) or gap > SAME_GRADIENT * max(scale, sum(float(np.abs(g).sum()) for g in theirs)):
            return True
    return False


def _differ_in_float64(lab: Lab, batch: Parts, others: list[Parts], start: Any) -> bool:
    """Beside answers that are millions of times larger than the targets, float32 has no room for what the targets change."""
    losses = _wide_losses(lab, [batch, *others], start)
    return losses is not None and _differ(losses)


def _differ(losses: list[float]) -> bool:
    return any(abs(loss - losses[0]) > WIDE_ROUNDING * abs(losses[0]) for loss in losses[1:])


def _wide_losses(lab: Lab, batches: list[Parts], start: Any) -> list[float] | None:
    try:
        wide = lab.bench.double()
        wide.set_training(False)
        losses = []
        for batch in (batches[0], *batches):
            lab.tick()
            lab.bench.restore(start)  # the dice too
            losses.append(wide.loss(batch))
    except OutOfTime:
        raise
    except Exception:  # not every model computes in float64
        return None
    again, *found = losses
    return found if abs(again - found[0]) <= WIDE_ROUNDING * abs(again) else None


def _paired(lab: Lab, batch: Parts, shuffled: list[Parts], start: Any) -> bool | None:
    """In float64 even a model whose answers hardly differ shows that it matters whose target is whose."""
    if _gradients_differ(lab, batch, shuffled, start) or _matters_near_the_targets(lab, batch, shuffled, start):
        return True
    try:
        wide = lab.bench.double()
        wide.set_training(False)
        if not _answers_differ(lab, wide, batch):
            return None
    except Exception:  # not every model computes in float64
        return None
    losses = _wide_losses(lab, [batch, *shuffled], start)
    return None if losses is None else _differ(losses)


def _matters_near_the_targets(lab: Lab, batch: Parts, shuffled: list[Parts], start: Any) -> bool:
    """Below all targets an absolute error is the same whichever is whose. Answers as large as the targets tell."""
    targets = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    if not isinstance(lab.adapter, Substitutes) or len(targets) != 1 or targets[0].dtype.kind != "f":
        return False
    drawn = lab.rng.normal(targets[0].mean(), targets[0].std(), targets[0].size)

    def near(answer: Any) -> Any:
        values = lab.adapter.values(answer)
        fits = values.size == drawn.size and values.dtype.kind == "f"
        return lab.adapter.like(drawn.reshape(values.shape), answer) if fits else answer

    losses = []
    for other in (batch, *shuffled):
        lab.bench.restore(start)
        lab.bench.set_training(False)
        change = partial(map_arrays, change=near, is_array=lab.adapter.is_array)
        losses.append(lab.adapter.loss_with(lab.bench, other, change))
    return any(abs(loss - losses[0]) > DIFFERENT * 10 * abs(losses[0]) for loss in losses[1:])


def _answers_differ(lab: Lab, bench: Bench, batch: Parts) -> bool:
    size = sample_count(lab, batch)
    found = [lab.adapter.values(a) for output in bench.outputs(batch) for _, a in leaves(output, lab.adapter.is_array)]
    found = [a for a in found if a.ndim and len(a) == size and a.dtype == np.float64]
    return any(np.ptp(a, axis=0).max() > DIFFERENT * np.abs(a).max() for a in found)


def _refuse_unsupervised(lab: Lab, batch: Parts, size: int) -> None:
    """A training without labels may be handed labels all the same."""
    if lab.subject.step is not None:
        raise Unsupported("your step does not use the targets, as is right where a training needs no labels")
    outputs = [a.shape for _, a in leaves(lab.bench.forward(batch.inputs), lab.adapter.is_array)]
    if len(outputs) != 1 or not len(outputs[0]) or outputs[0][0] != size:
        raise Unsupported("the loss does not use the targets, but it may find its own among the outputs")
