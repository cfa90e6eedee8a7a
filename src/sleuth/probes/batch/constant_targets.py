"""Where all samples have (almost) the same target: equal trainings with and without inputs, judged on held-out batches."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import SameTargets
from sleuth.probes.lab.one_batch import change_inputs
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.rates import use_working_rate
from sleuth.probes.lab.samples import join
from sleuth.probes.learners.features import tabulate
from sleuth.probes.learners.learnability import Learnability, Result
from sleuth.probes.learners.simple_learners import Bank

# Fewer may have the same target by chance.
FEWEST = 32
# Of the targets' variance. What differs between samples by no more may be noise; where the inputs tell it, it is not.
ALIKE = 0.01
STEPS = 150
# Of the start: there is nothing left to learn when the loss was below this for so many steps.
LEARNED = 0.01
STANDING = 10
JUDGED_BATCHES = 8
# Wider targets are mixed into so many columns by fixed random weights.
WIDTH = 16


@probe(
    title="Training without inputs",
    stage=Stage.BATCH,
    rank=12,
    emits=(SameTargets,),
    needs=("forward", "loss", "backward"),
    share=0.2,
)
def sameness(lab: Lab) -> Iterator[Observation]:
    targets = _targets(lab)
    unlike = _unlike(targets)
    link = _link(lab, targets) if unlike > 0 else None
    start = lab.bench.snapshot()
    try:
        trained, judged = _batches(lab)
        before = _losses(lab, judged)
        blank = [_flat(lab, batch) for batch in judged]
        low = LEARNED * float(before.mean())
        _train(lab, start, trained, low)
        seeing = _losses(lab, judged)
        steps = _train(lab, start, [_flat(lab, batch) for batch in trained], low)
        blind = _losses(lab, blank)
        difference = blind - seeing
        yield SameTargets(
            samples=len(targets),
            numbers=targets.shape[1],
            unlike=unlike,
            steps=steps,
            start=float(before.mean()),
            with_inputs=float(seeing.mean()),
            without_inputs=float(blind.mean()),
            error=float(difference.std(ddof=1) / np.sqrt(len(difference))) if len(difference) > 1 else 0.0,
            link_skill=link.skill if link else None,
            link_p_value=link.p_value if link else None,
        )
    finally:
        lab.bench.restore(start)


def _targets(lab: Lab) -> np.ndarray:
    """One row a sample."""
    found = []
    for batch in lab.train.batches:
        arrays = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
        if len(arrays) != 1 or not arrays[0].ndim:
            raise Unsupported("there is no single target with one entry a sample")
        found.append(arrays[0].reshape(len(arrays[0]), -1))
    if len({t.shape[1] for t in found}) > 1:
        raise Unsupported("the targets of different batches differ in their shape")
    targets = np.concatenate(found)
    distinct = len(np.unique(np.concatenate(lab.train.exact))) if lab.train.exact else 0
    if min(len(targets), distinct) < FEWEST:
        raise Unsupported(f"fewer than {FEWEST} different samples were read")
    return targets


def _unlike(targets: np.ndarray) -> float:
    """Raises Unsupported where the targets are not alike, or are one number that stands for "no target", as 0 and 1 do."""
    if (targets == targets[:1]).all():
        if np.ptp(targets[0]) == 0 and targets[0, 0] == np.round(targets[0, 0]):
            raise Unsupported("every target is the same whole number")
        return 0.0
    if targets.dtype.kind != "f" or not np.isfinite(targets).all():
        raise Unsupported("the samples have different targets")
    wide = targets.astype(np.float64)
    between = float(wide.mean(axis=0).var())
    within = float(wide.var(axis=0).mean())
    if within > ALIKE * (within + between):
        raise Unsupported("the samples have different targets")
    return within / (within + between)


def _link(lab: Lab, targets: np.ndarray) -> Result:
    """Do the inputs tell what is not the same?"""
    samples = join(lab.train.batches, lab.adapter)
    rest = targets[: len(samples)].astype(np.float64)
    rest = rest - rest.mean(axis=0)
    rest = rest[:, rest.std(axis=0) > 0]
    rest /= rest.std(axis=0)
    if rest.shape[1] > WIDTH:
        rest = rest @ lab.rng.normal(size=(rest.shape[1], WIDTH))
        rest = (rest - rest.mean(axis=0)) / rest.std(axis=0)
    table = tabulate(samples.blocks, lab.rng)
    if not table.shape[1]:
        raise Unsupported("the inputs do not vary")
    lab.tick()
    question = Learnability(Bank(table, lab.rng), rest.astype(np.float32), lab.rng)
    return question.test(np.arange(len(samples))[None])[0]


def _batches(lab: Lab) -> tuple[list[Parts], list[Parts]]:
    """(to train on, to judge by): validation where it was given."""
    whole = lab.train.batches
    if lab.validation is not None and lab.validation.batches:
        return whole, lab.validation.batches[:JUDGED_BATCHES]
    held_out = min(JUDGED_BATCHES, len(whole) // 4)
    return (whole[:-held_out], whole[-held_out:]) if held_out else (whole, whole)


def _flat(lab: Lab, batch: Parts) -> Parts:
    """One and the same value everywhere: not even places can be told apart by it."""

    def flat(array: Any) -> Any:
        values = lab.adapter.values(array)
        if values.dtype.kind == "f":
            return lab.adapter.like(np.full(values.shape, np.nanmean(values), dtype=values.dtype), array)
        known, counts = np.unique(values, return_counts=True)
        return lab.adapter.like(np.full(values.shape, known[np.argmax(counts)], dtype=values.dtype), array)

    return change_inputs(lab, batch, flat)


def _train(lab: Lab, start: Any, batches: list[Parts], low: float) -> int:
    """All steps, or until the loss has been below `low` for a while; how many it took."""
    lab.bench.restore(start)
    use_working_rate(lab)
    lab.bench.set_training(True)
    losses: list[float] = []
    for step in range(STEPS):
        lab.tick()
        losses.append(lab.bench.step(batches[step % len(batches)]))
        if len(losses) >= STANDING and max(losses[-STANDING:]) < low:
            break
    return len(losses)


def _losses(lab: Lab, batches: list[Parts]) -> np.ndarray:
    lab.bench.set_training(False)
    losses = np.array([lab.bench.loss(batch) for batch in batches])
    if not np.isfinite(losses).all():
        raise Unsupported("the loss is not a finite number")
    return losses
