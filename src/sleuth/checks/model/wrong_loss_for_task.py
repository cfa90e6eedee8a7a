"""The loss is made for another kind of target."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, LossCall, Split
from sleuth.core.stage import Confidence, Severity, Stage

REGRESSION = ("mse", "l1", "huber")
# Losses whose two kinds of target are called 1 and -1.
SIGNED = ("soft_margin_loss", "hinge_embedding_loss", "cosine_embedding_loss", "margin_ranking_loss")
# Class probabilities sum to one; float16 arithmetic strays by about a hundredth.
SUM_SLACK = 0.02
# Class indices are few and start at zero. A measured quantity that happens to be whole rarely fills 0, 1, 2, … evenly.
FEWEST_CLASSES, MOST_CLASSES = 3, 50
# In a set of classes no index is missing and none is rarer than this share of an even spread.
RAREST = 0.2
# A share of 1 may be held a rounding below it, so that its logarithm is none that breaks.
NOTHING = 1e-5


@check(
    code="M209",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(LossCall,),
    explains=(
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "target-not-scaled",
        "initial-loss-off",
        "underfitting",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "class-imbalance",
        "target-out-of-range",
        "forward-fails",
        "capacity-too-small",
        "step-changes-nothing",
        "weights-do-not-change",
        "zero-gradients",
        "disconnected-parameters",
        "loss-ignores-target",
    ),
    title="The loss is made for another kind of target",
    why="""A squared error on class indices says that class 9 is nine times as far from 0 as class 1, which means nothing; a
    cross-entropy on measured values treats them as probabilities. The model then learns an answer to another question.""",
    fix="""Use cross-entropy with one output a class for class indices, and a squared or absolute error for measured
    values.""",
    decided_by="the kind of targets against the kind of loss",
    symptoms=(
        "mse for classification",
        "cross entropy for regression",
        "which loss should I use",
        "loss falls but accuracy does not",
        "predictions are numbers between the classes",
    ),
)
def wrong_loss_for_task(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for call in seen.all(LossCall)[:1]:
        output, target = call.argument("output"), call.argument("target")
        if target is not None and call.name in SIGNED:
            yield from _yes_and_no_for_signs(call, target)
        elif output is None or target is None:
            yield NotExamined("the loss has no target to look at")
        elif call.family in REGRESSION:
            yield from _regression_on_classes(seen, call, output, target)
        elif call.family in ("cross-entropy", "bce", "bce-logits"):
            yield from _probabilities_that_are_none(call, target)
        elif call.family == "probabilities" and target.facts.shape == output.facts.shape and len(target.facts.shape) == 2:
            yield from _one_of_several(call, target)
        # An index of a class is the only target that these take.
        elif call.family not in ("nll", "ctc") and call.name != "multi_margin_loss":
            yield NotExamined(f"nothing is known about the targets that {call.name} wants")


def _regression_on_classes(seen: Seen, call: LossCall, output: Argument, target: Argument) -> Iterator[Evidence]:
    counts = seen.whole_targets(Split.TRAIN)
    if target.facts.whole_share < 1 or not FEWEST_CLASSES <= len(counts) <= MOST_CLASSES:
        return
    even = sum(counts.values()) / len(counts)
    if sorted(counts) != list(range(len(counts))) or min(counts.values()) < RAREST * even:
        return
    if output.facts.shape[-1:] != (1,) and len(output.facts.shape) > 1:
        return
    yield Evidence(
        location=call.made_location or call.location,
        summary=f"{call.name} is used on targets that are class indices: the whole numbers 0 to {len(counts) - 1}",
        fix=f"Give the model {len(counts)} outputs and use cross-entropy; targets stay class indices.",
        confidence=Confidence.POSSIBLE if target.facts.is_float else Confidence.LIKELY,
        numbers={"classes": len(counts)},
    )


def _one_of_several(call: LossCall, target: Argument) -> Iterator[Evidence]:
    """A loss that shares out one whole among the classes, and targets that are yes or no for each."""
    values = target.facts.statistics
    if target.facts.whole_share < 1 or values.min < 0 or values.max > 1:
        return
    place = call.made_location or call.location
    if target.facts.shape[1] == 1 and call.value is not None and abs(call.value) < NOTHING:
        yield Evidence(
            location=place,
            summary=f"{call.name} compares classes and is given one output: its share is always 1, the loss always 0",
            fix="Use a binary cross-entropy for one output of yes or no.",
            severity=Severity.ERROR,
            confidence=Confidence.CERTAIN,
            numbers={"outputs": 1},
        )
    elif len(target.axis_sums) > 1 and max(target.axis_sums[1]) > 1 and target.facts.shape[1] > 1:
        most = round(max(target.axis_sums[1]))
        yield Evidence(
            location=place,
            summary=f"{call.name} wants one class a sample, and the targets name up to {most} at once",
            fix="Use a binary cross-entropy on sigmoid outputs where several classes may hold at once.",
            confidence=Confidence.LIKELY,
            numbers={"classes_at_once": most},
        )


def _yes_and_no_for_signs(call: LossCall, target: Argument) -> Iterator[Evidence]:
    values = target.facts.statistics
    if target.facts.whole_share == 1 and values.min == 0 and values.max == 1:
        yield Evidence(
            location=call.made_location or call.location,
            summary=f"{call.name} wants targets of 1 and -1 and is given 1 and 0: what is 0 teaches nothing",
            fix="Make them 1 and -1: y = 2 * y - 1.",
            confidence=Confidence.CERTAIN,
            numbers={"target_min": values.min, "target_max": values.max},
        )


def _probabilities_that_are_none(call: LossCall, target: Argument) -> Iterator[Evidence]:
    # Whole numbers outside are class indices of another count: target-out-of-range speaks of those.
    if not target.facts.is_float or target.facts.whole_share == 1:
        return
    statistics = target.facts.statistics
    if statistics.min < -SUM_SLACK or statistics.max > 1 + SUM_SLACK:
        yield Evidence(
            location=call.made_location or call.location,
            summary=f"{call.name} wants class indices or probabilities, but the targets range from {statistics.min:.3g} "
            f"to {statistics.max:.3g}",
            fix="Use a squared or absolute error (mse_loss, smooth_l1_loss) for measured values.",
            confidence=Confidence.CERTAIN,
            numbers={"target_min": statistics.min, "target_max": statistics.max},
        )
