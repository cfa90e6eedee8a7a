"""One class dominates, or a class is missing."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture, Batch, LossCall, Split
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Order

# Beyond ten to one the rare class hardly moves the gradient of a mean over the batch (also the default of peers).
LOPSIDED = 10.0
# The ratio must stand above the threshold by this many standard errors of its logarithm (one-sided 95 %).
SURE = 1.64
# Where every class that occurs has this many samples, one of like frequency is missing by chance once in e^20.
ENOUGH = 20
# Beyond this it is a vocabulary or a catalogue, whose long tail is natural.
MOST_CLASSES = 1000
REGRESSION_LOSSES = ("mse", "l1", "huber")
CLASS_LOSSES = ("cross-entropy", "nll", "probabilities", "bce", "bce-logits", "hinge")


@check(
    code="D107",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Batch, LossCall),
    explains=(
        "predicts-one-class",
        "collapsed-output",
        "initial-loss-off",
        "learns-without-input",
        "loss-spikes",
        "metric-misread",
    ),
    title="Some classes hardly occur",
    why="""The loss is a mean over samples: whoever always answers the common class is almost right, and the gradient of the
    rare ones drowns. Accuracy then looks good and says nothing.""",
    fix="""Weight the loss by class, loss = CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts)) (pos_weight= for two
    classes), or draw rare classes more often with a WeightedRandomSampler; judge by recall per class.""",
    decided_by="the number of labels of each class",
    symptoms=(
        "predicts only one class",
        "always predicts the majority class",
        "high accuracy but useless",
        "recall of the rare class is zero",
        "accuracy stuck at the share of the biggest class",
    ),
)
def class_imbalance(seen: Seen, *, lopsided: float = LOPSIDED) -> Iterator[Evidence | NotExamined]:
    counts = seen.labels(Split.TRAIN)
    if all(c.family in REGRESSION_LOSSES for c in seen.all(LossCall)):
        return
    reason = _not_applicable(seen, counts)
    if reason is not None:
        yield NotExamined(reason)
        return
    call = seen.all(LossCall)[0]
    if call.options.get("has_weight") or call.options.get("has_pos_weight"):
        return
    counts = {k: n for k, n in counts.items() if k >= 0 and k != call.options.get("ignore_index")}
    if sum(counts.values()) < ENOUGH:
        yield NotExamined(f"{sum(counts.values())} labels are too few to judge their balance")
        return
    yield from _missing(counts)
    yield from _dominated(counts, lopsided)


def _not_applicable(seen: Seen, counts: dict[int, int]) -> str | None:
    calls = seen.all(LossCall)
    if not counts or any(b.target is not None and b.labels is None for b in seen.batches(Split.TRAIN)):
        return "the target is not one class a sample"
    if not any(c.family in CLASS_LOSSES for c in calls):
        return f"{calls[0].name} is not known as a loss for classes"
    if any(c.family not in CLASS_LOSSES for c in calls) or len({c.location for c in calls}) > 1:
        return "several losses are at work"
    if not calls[0].was_given(seen.batches(Split.TRAIN)[0]):
        return "the loss compares with something else than the labels of the data"
    if max(len(counts), _outputs(calls[0])) > MOST_CLASSES:
        return f"with {len(counts)} classes a long tail is natural"
    if _is_vocabulary(seen, _outputs(calls[0])):
        return "the classes are the tokens that the model reads"
    order = seen.maybe(Order)
    if order is not None and not order.complete and order.runs < order.expected_runs / 2:
        return "the labels come in blocks and only a part of the data was read"
    return None


def _outputs(call: LossCall) -> int:
    output = call.argument("output")
    if output is None or len(output.facts.shape) < 2:
        return 1
    return output.facts.shape[1]


def _is_vocabulary(seen: Seen, outputs: int) -> bool:
    """A language model predicts what it reads, and words are as rare as they are."""
    architecture = seen.maybe(Architecture)
    tables = [x for x in architecture.layers if x.family == "embedding"] if architecture else []
    if any(table.settings.get("in") == outputs for table in tables):
        return True
    first = seen.batches(Split.TRAIN)[0].inputs
    ids = [x for x in first if not x.is_float and x.dtype not in ("bool", "uint8")]
    return any(outputs / 2 <= x.statistics.max < outputs for x in ids) and outputs > ENOUGH


def _missing(counts: dict[int, int]) -> Iterator[Evidence]:
    if min(counts.values()) < ENOUGH:
        return
    total = sum(counts.values())
    if len(counts) == 1:
        only = next(iter(counts))
        yield Evidence(
            where=f"class {only}",
            summary=f"all {total} labels are {only}: there is nothing to tell apart",
            numbers={"samples": total, "classes": 1},
            confidence=Confidence.CERTAIN,
            strength=float(total),
        )
        return
    gaps = sorted(set(range(max(counts))) - set(counts))
    if not gaps or len(gaps) > len(counts):
        return
    # Classes counted from one leave the first output idle: untidy, not harmful.
    idle = gaps == [0]
    yield Evidence(
        where=f"class {gaps[0]}",
        summary=f"class {', '.join(map(str, gaps[:5]))} never occurs among {total} labels, while {len(counts)} others do",
        numbers={"missing": len(gaps), "classes": len(counts), "samples": total},
        severity=Severity.HINT if idle else None,
        fix="Count classes from zero: y = y - 1."
        if idle
        else "Find out where the samples of this class were lost, or renumber the classes.",
    )


def _dominated(counts: dict[int, int], lopsided: float) -> Iterator[Evidence]:
    common, rare = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    most, least = counts[common] + 0.5, counts[rare] + 0.5
    error = math.sqrt(1 / most + 1 / least)
    if len(counts) < 2 or most / least * math.exp(-SURE * error) <= lopsided:
        return
    ratio = counts[common] / counts[rare]
    yield Evidence(
        where=f"class {rare}",
        summary=f"class {common} has {counts[common]} samples, class {rare} only {counts[rare]}: {ratio:.0f} to 1",
        numbers={"commonest": counts[common], "rarest": counts[rare], "ratio": ratio, "classes": len(counts)},
        strength=ratio / lopsided,
    )
