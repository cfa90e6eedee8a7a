"""What is logged is not what the model does: a sum that is never reset, an argmax over one column."""

from collections.abc import Iterator
from itertools import takewhile

import numpy as np

from sleuth.checks.evidence.logged_metric import Logged, Pair, beside, logged_course
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Evaluation, LossCall, Split, Step
from sleuth.core.reading.curve import adds_up, heard_curve
from sleuth.core.stage import Confidence, Severity, Stage

# Names under which people log the share of right answers. Top-5 or balanced accuracy is something else.
ACCURACY = ("accuracy", "acc")
# Room for means over batches of unequal size, for answers in training mode and for a metric's own rounding.
ROOM = 0.1
# A value may be wrong once; a way of counting is wrong always.
LEAST_LOGS = 3
# Two ways to the same number differ by rounding and by the last, smaller batch.
CLOSE = 0.02
# Where the validation itself was not heard it takes more: an accuracy may gain a little, or stay, for some time.
LEAST_TOTALS = 5
# Of the training's share: others are seldom answered half as well, from the first epoch to the last.
ALIKE = 0.5
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
        course = logged_course(logged, split, ACCURACY)
        pairs = beside(course, seen, split)
        compared |= bool(course)
        found = _beyond_hundred(course, split) or _contradicted(pairs, split, room)
        if found is None and split is Split.VALIDATION and not pairs:
            # Of a validation that was not heard: what the training's answers say about it.
            trained = beside(course, seen, Split.TRAIN)
            found = _counted_on(trained, room) or _one_column(trained, seen, room)
        if found is not None:
            yield found
    losses = logged_course(logged, Split.TRAIN, ("loss",))
    compared |= bool(losses)
    if (found := _never_reset(losses, seen)) is not None:
        yield found
    losses = logged_course(logged, Split.VALIDATION, ("loss",))
    compared |= bool(losses)
    if adds_up(np.array([e.step for e in losses]), np.array([e.value for e in losses]), heard_curve(seen)):
        yield _growing(losses, losses[-1].value - losses[-2].value, "val_loss")
    if not compared:
        yield NotExamined("none of the logged metrics is an accuracy or a loss")


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


def _counted_on(trained: list[Pair], room: float) -> Evidence | None:
    """Shares that add up: each value is above the last by a share of its own, much like the training's at the time. In percent
    it would be a model that knows its training data and next to nothing else, and gains by that share, to the end."""
    added = np.diff([p.value for p in trained], prepend=0.0)
    if len(trained) < LEAST_TOTALS or trained[-1].value <= 1 + CLOSE or added.max() > 1 + CLOSE:
        return None
    if not all(ALIKE * p.low <= a <= p.high + room and a > 0 for p, a in zip(trained, added, strict=True)):
        return None
    last = trained[-1]
    if last.value / 100 >= ALIKE * last.low:  # it may be percent
        return None
    return Evidence(
        where="val_accuracy",
        summary=f"val_accuracy was logged as {last.value:.4g} at step {last.step}: no share is above 1, and each of the "
        f"{len(trained)} values is the one before and a share such as {added[-1]:.2f}: it keeps growing",
        fix="Set the counts of right answers and of samples to 0 where a validation begins.",
        numbers={"logged": last.value, "added": float(added[-1]), "times": len(trained)},
        first_step=next(p.step for p in trained if p.value > 1),
        last_step=last.step,
        strength=last.value,
    )


def _one_column(trained: list[Pair], seen: Seen, room: float) -> Evidence | None:
    """The very same value every time, while the model comes to know its data: the share of class 0, which argmax names."""
    values = {p.value for p in trained}
    if len(trained) < LEAST_TOTALS or len(values) > 1 or not _answers_in_one_column(seen):
        return None
    last = trained[-1]
    scale = 100.0 if last.value > 1 else 1.0
    share = last.value / scale
    if abs(share - last.first_class) > room or trained[-1].low - room <= share <= trained[-1].high + room:
        return None
    return Evidence(
        where="val_accuracy",
        summary=f"val_accuracy was logged as {last.value:.4g} all {len(trained)} times, about the share of class 0 "
        f"({last.first_class:.2f}), while {max(last.low, 0):.2f} or more of the answers in training became right: the model has "
        "one output, and argmax over a single column always names class 0",
        fix="Compare the output with its threshold: (output > 0).squeeze(1) == target, for probabilities (output > 0.5).",
        numbers={"logged": last.value, "first_class": last.first_class, "low": last.low, "times": len(trained)},
        last_step=last.step,
        strength=abs(share - last.low) * 10,
    )


def _answers_in_one_column(seen: Seen) -> bool:
    """And stays itself in a validation: batch-norms that have learned the wrong averages name one class, too."""
    shapes = [a.facts.shape for call in seen.all(LossCall) if (a := call.argument("output")) is not None]
    plain = all(p.family != "batchnorm" for p in seen.one(Architecture).parameters) if seen.maybe(Architecture) else False
    return plain and bool(shapes) and all(len(shape) == 2 and shape[1] == 1 for shape in shapes)


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


def _growing(losses: list[Logged], mean: float, name: str = "loss") -> Evidence:
    return Evidence(
        where=name,
        summary=f"{name} was logged as {losses[-1].value:.4g} at step {losses[-1].step}: that is the sum since the training "
        f"began; over the last {losses[-1].step - losses[-2].step} steps it is {mean:.4g} on average",
        fix="Set the sum of losses to 0 where an epoch begins, and divide it by the number of batches.",
        numbers={"logged": losses[-1].value, "mean": mean},
        first_step=losses[1].step,
        last_step=losses[-1].step,
    )
