"""What is logged is not what the model does: a sum that is never reset, an argmax over one column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Evaluation, Predictions, Split, Step
from sleuth.core.stage import Confidence, Severity, Stage

# Names under which people log the share of right answers. Top-5 or balanced accuracy is something else.
ACCURACY = ("accuracy", "acc")
# Room for means over batches of unequal size, for answers in training mode and for a metric's own rounding.
ROOM = 0.1
# And for chance, in standard errors of the samples that were seen.
ERRORS = 4.0
# A value may be wrong once; a way of counting is wrong always.
LEAST_LOGS = 3
# Two ways to the same number differ by rounding and by the last, smaller batch.
CLOSE = 0.02
# A sum over steps is told from a mean when there are some.
LEAST_STEPS = 4


@check(
    code="T433",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Evaluation,),
    title="A logged metric is not what the model does",
    why="""A metric that is counted wrongly hides a training that works, or praises one that does not: decisions about rates,
    data and stopping are then made on a number that means something else.""",
    fix="""Count anew for each pass: set correct, total and the sum of losses to 0 where an epoch begins, take argmax over the
    class axis, and compare arrays of one shape.""",
    decided_by="the logged metric against the answers and losses that were seen",
    symptoms=(
        "accuracy above 1",
        "accuracy over 100 percent",
        "accuracy keeps rising every epoch",
        "accuracy stays exactly the same",
        "loss goes up every epoch although the model improves",
    ),
)
def metric_misread(seen: Seen, *, room: float = ROOM) -> Iterator[Evidence | NotExamined]:
    logged = [e for e in seen.all(Evaluation) if e.logged]
    if not logged:
        yield NotExamined("no metric was logged: w.log(accuracy=…) tells of one")
        return
    compared = False
    for split in Split:
        course = _course(logged, split, ACCURACY)
        pairs = _beside(course, seen, split)
        compared |= bool(course)
        found = _beyond_hundred(course, split) or _contradicted(pairs, split, room)
        if found is not None:
            yield found
    losses = _course(logged, Split.TRAIN, ("loss",))
    compared |= bool(losses)
    if (found := _never_reset(losses, seen)) is not None:
        yield found
    if not compared:
        yield NotExamined("none of the logged metrics is an accuracy or a loss")


@dataclass(frozen=True)
class Logged:
    step: int
    value: float


@dataclass(frozen=True)
class Pair:
    """A logged accuracy, and what the answers that were seen allow."""

    step: int
    value: float
    low: float
    high: float
    first_class: float  # the share of class 0 among the targets


def _course(logged: Sequence[Evaluation], split: Split, names: tuple[str, ...]) -> list[Logged]:
    found = []
    for evaluation in logged:
        value = next((v for name, v in evaluation.metrics.items() if name.lower() in names), None)
        if evaluation.split is split and value is not None and np.isfinite(value):
            found.append(Logged(evaluation.step, float(value)))
    return found


def _name(split: Split) -> str:
    return "accuracy" if split is Split.TRAIN else "val_accuracy"


def _beyond_hundred(course: list[Logged], split: Split) -> Evidence | None:
    worst = max(course, key=lambda e: e.value, default=None)
    if worst is None or worst.value <= 100 + 1e-3:
        return None
    return Evidence(
        where=_name(split),
        summary=f"{_name(split)} was logged as {worst.value:.4g} at step {worst.step}: no share is above 1, or 100 in percent",
        confidence=Confidence.CERTAIN,
        numbers={"value": worst.value},
        first_step=next(e.step for e in course if e.value > 100 + 1e-3),
        last_step=course[-1].step,
        strength=worst.value / 100,
    )


def _beside(course: list[Logged], seen: Seen, split: Split) -> list[Pair]:
    """Validation beside the very pass that was just heard, training beside what was seen on the way to it."""
    looks = [p for p in seen.all(Predictions) if p.split is split]
    pairs = []
    for entry in course:
        # What is logged after a step counts as the next one's.
        mine = [p for p in looks if (p.step == entry.step if split is Split.VALIDATION else p.step < entry.step)]
        if not mine or len({(str(p.location), p.outputs) for p in mine}) > 1:
            continue
        zeros = sum(p.targets.get(0, 0) for p in mine) / sum(p.samples for p in mine)
        pairs.append(Pair(entry.step, entry.value, *_range(mine, entry.step), zeros))
    return pairs


def _range(looks: list[Predictions], now: int) -> tuple[float, float]:
    """Nobody knows over how many batches a metric was averaged: the least and the largest mean from some step until now."""
    steps = np.array([*(p.step for p in looks), max(now, looks[-1].step + 1)], dtype=float)
    weights, samples = np.diff(steps).clip(min=1.0), np.array([p.samples for p in looks], dtype=float)
    shares = np.array([p.right for p in looks]) / samples
    cautious = (shares * samples + 1) / (samples + 2)
    # Summed from the last look back to each of them.
    total = np.cumsum(weights[::-1])
    means = np.cumsum((weights * shares)[::-1]) / total
    errors = np.sqrt(np.cumsum((weights**2 * cautious * (1 - cautious) / samples)[::-1])) / total
    return float((means - ERRORS * errors).min()), float((means + ERRORS * errors).max())


def _contradicted(pairs: list[Pair], split: Split, room: float) -> Evidence | None:
    """Percent and shares are both fine; which of the two it is, the values say."""
    scale = min((1.0, 100.0), key=lambda s: sum(_outside(p, s, room) for p in pairs))
    # A count that is not reset goes wrong with the second epoch, and stays so.
    late = list(takewhile(lambda p: _outside(p, scale, room), reversed(pairs)))[::-1]
    if len(late) < LEAST_LOGS:
        return None
    last = late[-1]
    how, fix = _how(late, scale)
    seen = f"between {max(last.low, 0.0):.2f} and {min(last.high, 1.0):.2f}"
    return Evidence(
        where=_name(split),
        summary=f"{_name(split)} was logged as {last.value:.4g} at step {last.step}, but the share of right answers that were "
        f"seen is {seen}{how}",
        fix=fix,
        numbers={"logged": last.value, "low": last.low, "high": last.high, "times": len(late)},
        first_step=late[0].step,
        last_step=last.step,
        strength=abs(last.value / scale - (last.low + last.high) / 2) * 10,
    )


def _outside(pair: Pair, scale: float, room: float) -> bool:
    return not pair.low - room <= pair.value / scale <= pair.high + room


def _how(wrong: list[Pair], scale: float) -> tuple[str, str | None]:
    if all(p.value > 1 for p in wrong) and scale == 1.0:
        return ": it keeps growing", "Set the counts of right answers and of samples to 0 where an epoch begins."
    if all(abs(p.value / scale - p.first_class) <= CLOSE for p in wrong):
        return (
            f"; {wrong[-1].first_class:.2f} is the share of class 0, which argmax over a single column always names",
            "Take argmax over the class axis, or compare a single output with its threshold: (output > 0).",
        )
    return "", None


def _never_reset(losses: list[Logged], seen: Seen) -> Evidence | None:
    """The sum of all losses since the beginning, as it is or divided by the number of batches of one epoch."""
    steps = seen.all(Step)
    if len(losses) < LEAST_LOGS or seen.count(Step) != len(steps) or len({s.optimiser for s in steps}) > 1:
        return None
    if any(s.loss is None for s in steps):
        return None
    numbers, total = np.array([s.step for s in steps]), np.cumsum([s.loss for s in steps])
    before = np.searchsorted(numbers, [e.step for e in losses])
    length = np.diff(before, prepend=0)
    if before.min() < 1 or length.min() < LEAST_STEPS:
        return None
    values, sums = np.array([e.value for e in losses]), total[before - 1]
    spans = sums - np.concatenate([[0.0], sums[:-1]])
    if not sums[-1] > 1.5 * spans[-1] > 0:
        return None
    for divided in (1.0, length[-1]):
        if np.all(np.abs(values * divided - sums) <= CLOSE * np.abs(sums)):
            return _growing(losses, float(spans[-1] / length[-1]))
    return None


def _growing(losses: list[Logged], mean: float) -> Evidence:
    return Evidence(
        where="loss",
        summary=f"loss was logged as {losses[-1].value:.4g} at step {losses[-1].step}: that is the sum since the training began; "
        f"over the last {losses[-1].step - losses[-2].step} steps it is {mean:.4g} on average",
        fix="Set the sum of losses to 0 where an epoch begins, and divide it by the number of batches.",
        numbers={"logged": losses[-1].value, "mean": mean},
        first_step=losses[1].step,
        last_step=losses[-1].step,
    )
