"""A class index below zero or beyond the number of outputs."""

import re
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, Batch, Failure, LossCall, OutOfRange, Split
from sleuth.core.reading.lines import beside
from sleuth.core.stage import Confidence, Severity, Stage

CLASS_LOSSES = ("cross-entropy", "nll", "probabilities")
PROBABILITY_LOSSES = ("bce", "bce-logits")
REGRESSION_LOSSES = ("mse", "l1", "huber")
# What torch says on the CPU; on a GPU it is a device-side assert that names the condition.
OUT_OF_BOUNDS = re.compile(r"Target (-?\d+) is out of bounds|t >= 0 && t < n_classes")
# The first batches are the ones that the loss was seen with.
OBSERVED = 8
# The index that torch leaves out unless told otherwise.
IGNORED = -100


@check(
    code="D106",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Batch, OutOfRange), (LossCall, Failure, OutOfRange)),
    explains=(
        "forward-fails",
        "output-target-mismatch",
        "loss-not-finite",
        "initial-loss-off",
        "loss-diverges",
        "loss-not-decreasing",
        "cannot-overfit-one-batch",
        "class-imbalance",
        "capacity-too-small",
    ),
    title="Targets lie outside what the loss can count",
    why="""A model with K outputs knows the classes 0 to K-1. An index outside stops the loss with a message that hides its cause
    on a GPU, or reads memory that means nothing. Losses on probabilities likewise know only targets from 0 to 1.""",
    fix="Count classes from zero: y = y - y.min(); or give the last layer as many outputs as there are classes.",
    decided_by="the smallest and largest label against the number of outputs",
    symptoms=(
        "Target 10 is out of bounds",
        "device-side assert triggered",
        "Assertion `t >= 0 && t < n_classes` failed",
        "labels start at 1",
        "all elements of target should be between 0 and 1",
        "BCE loss is negative",
    ),
)
def target_out_of_range(seen: Seen) -> Iterator[Evidence | NotExamined]:
    asked = next((o for o in seen.all(OutOfRange) if o.kind == "class"), None)
    if asked is not None:  # the very call that raised was read
        yield _refused(asked)
        return
    if not seen.all(Batch):
        yield NotExamined("no data was seen")
        return
    calls = [c for c in seen.all(LossCall) if c.family in (*CLASS_LOSSES, *PROBABILITY_LOSSES)]
    found = [e for call in calls if (e := _judge(call, seen)) is not None]
    if found:
        yield found[0]
        return
    failure = next((f for f in seen.all(Failure) if OUT_OF_BOUNDS.search(f.message)), None)
    if failure is not None:
        match = OUT_OF_BOUNDS.search(failure.message)
        value = match.group(1) if match else None
        yield Evidence(
            where="target",
            location=failure.location,
            summary=f"the loss refuses the target {value}" if value else "the loss refuses a class index",
        )
    elif not calls and any(c.family not in REGRESSION_LOSSES for c in seen.all(LossCall)):
        yield NotExamined("the loss was not seen to take class indices or probabilities")


def _refused(asked: OutOfRange) -> Evidence:
    lowest, highest, classes = asked.lowest, asked.highest, asked.size
    name = asked.index or "the target"
    many = f" ({asked.outside:,} of {asked.asked:,} are outside)" if asked.outside else ""
    return Evidence(
        where=asked.index or "target",
        location=asked.location,
        summary=f"{name}{beside(asked.location, asked.raised)} runs from {lowest} to {highest}{many}, but {asked.table} has "
        f"{classes}: classes 0 to {classes - 1}",
        numbers={"lowest": lowest, "highest": highest, "outputs": classes},
        # One batch need not hold the lowest class: only what begins at 1 and ends one too high is surely counted from 1.
        fix=_fix(lowest if lowest < 0 or (lowest, highest) == (1, classes) else 0, highest, classes),
    )


def _judge(call: LossCall, seen: Seen) -> Evidence | None:
    output, target = call.argument("output"), call.argument("target")
    if output is None or target is None or not target.facts.statistics.finite:
        return None
    if call.family in PROBABILITY_LOSSES:
        return _beyond_one(call, target)
    classes = _classes(output, target)
    if classes is None:
        return None
    lowest, highest = _range(call, target, seen)
    if lowest >= 0 and highest < classes:
        return None
    return Evidence(
        where="target",
        location=call.location,
        summary=f"the targets run from {lowest} to {highest}, but the model has {classes} outputs: classes 0 to {classes - 1}",
        numbers={"lowest": lowest, "highest": highest, "outputs": classes},
        fix=_fix(lowest, highest, classes),
    )


def _beyond_one(call: LossCall, target: Argument) -> Evidence | None:
    low, high = target.facts.statistics.min, target.facts.statistics.max
    if low >= 0 and high <= 1:
        return None
    signs = low == -1 and high == 1 and target.facts.whole_share == 1
    return Evidence(
        where="target",
        location=call.location,
        summary=f"the targets run from {low:g} to {high:g}, but {call.name} compares probabilities: 0 to 1",
        numbers={"lowest": low, "highest": high},
        fix="Make them 0 and 1: y = (y + 1) / 2."
        if signs
        else "Bring the targets to 0 and 1, such as y = (y == positive).float().",
    )


def _classes(output: Argument, target: Argument) -> int | None:
    """How many outputs there are: the one axis that the target lacks. None when the target is not of class indices."""
    scores, indices = output.facts.shape, target.facts.shape
    # Some frameworks take a column of indices as well.
    indices = indices[:-1] if indices == (*scores[:-1], 1) and scores[-1:] != (1,) else indices
    if target.facts.is_float or len(scores) != len(indices) + 1:
        return None
    # Classes stand behind the batch axis in some frameworks and last in others; a single sample has no batch axis.
    for axis in dict.fromkeys((min(1, len(scores) - 1), len(scores) - 1)):
        if scores[:axis] + scores[axis + 1 :] == indices:
            return scores[axis]
    return None


def _range(call: LossCall, target: Argument, seen: Seen) -> tuple[int, int]:
    """Over every label that was read where the target holds one a sample, else over this call; ignored ones left out."""
    ignored = {IGNORED, call.options.get("ignore_index", IGNORED)}
    measured = target.facts.statistics
    values = {int(measured.min), int(measured.max)}
    if any(call.was_given(batch) for batch in seen.batches(Split.TRAIN)[:OBSERVED]):
        values |= set(seen.labels(Split.TRAIN))
    kept = values - ignored or {0}
    return min(kept), max(kept)


def _fix(lowest: int, highest: int, classes: int) -> str:
    if lowest >= 0 and highest - lowest < classes:
        return f"Subtract {lowest} from the targets, so that classes count from 0: y = y - {lowest}."
    if lowest < 0:
        return (
            f"Find out what {lowest} stands for: a missing label is left out with ignore_index={lowest}, "
            "otherwise count classes from 0."
        )
    return f"Give the last layer {highest + 1} outputs instead of {classes}, or map the classes to 0 … {classes - 1}."
