"""Probabilities go into a loss that makes probabilities itself."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, LossCall
from sleuth.core.reading.lines import beside, producer_line
from sleuth.core.reading.wiring import by_place, class_axis, is_probabilities, within_unit
from sleuth.core.stage import Confidence, Severity, Stage

SIGMOIDS = ("sigmoid", "hardsigmoid")
SQUASHERS = ("softmax", *SIGMOIDS)
# What a loss by hand does to the output, by what was done to it before.
AGAIN = {"softmax": ("softmax", "log_softmax"), "sigmoid": ("sigmoid", "logsigmoid"), "hardsigmoid": ("sigmoid", "logsigmoid")}
JUDGED = ("cross-entropy", "bce-logits", "bce", "nll", "ctc")


@check(
    code="M205",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(LossCall,),
    explains=(
        "cannot-overfit-one-batch", "loss-not-decreasing", "loss-oscillates", "initial-loss-off", "vanishing-gradients",
        "exploding-gradients", "learning-rate-too-high", "learning-rate-too-low", "step-changes-nothing", "learns-without-input",
        "collapsed-output", "saturated-units", "wrong-last-activation", "wrong-loss-for-task", "update-too-small", "underfitting",
        "capacity-too-small",
    ),
    title="Softmax or sigmoid is applied twice",
    why="""This loss turns scores into probabilities by itself. Given probabilities, which all lie between 0 and 1, it
    cannot tell a sure answer from an unsure one: the loss stays far above zero and the gradients stay small.""",
    fix="""Remove the softmax (or sigmoid) before the loss and hand over the raw scores; apply it only where you predict.""",
    decided_by="the values that the loss is given: rows that sum to 1, or a squashing layer",
    symptoms=(
        "loss stuck at 2.303",
        "softmax before CrossEntropyLoss",
        "sigmoid before BCEWithLogitsLoss",
        "loss does not decrease",
        "loss decreases very slowly and stays high",
        "loss does not go below 1.46",
        "accuracy improves but the loss does not",
        "gradients are very small",
    ),
)  # fmt: skip
def double_softmax(seen: Seen) -> Iterator[Evidence | NotExamined]:
    calls = seen.all(LossCall)
    if not any(call.family in JUDGED or call.options.get("applies") for call in calls) and any(
        call.family == "other" for call in calls
    ):
        yield NotExamined(f"what {calls[0].name} does with the output is not known")
    for group in by_place(calls):
        reasons = [_reason(call, call.argument("output")) for call in group]
        if all(reasons):
            output, place = group[0].argument("output"), producer_line(group)
            yield Evidence(
                location=place or group[0].location,
                summary=f"{group[0].name}{beside(place, group[0].location)} is given {reasons[0]}, and applies {_own(group[0])} "
                "to them once more",
                numbers={"producer": output.producer if output else None, "batches": len(group)},
                confidence=None if output and output.producer in (*SQUASHERS, "log_softmax") else Confidence.LIKELY,
            )


def _own(call: LossCall) -> str:
    if call.family == "other":
        return str(call.options.get("applies"))
    return "softmax" if call.family in ("cross-entropy", "nll", "ctc") else "sigmoid"


def _reason(call: LossCall, output: Argument | None) -> str | None:
    """What is wrong with the output; None when nothing is."""
    if output is None or not output.facts.shape or output.facts.statistics.min == output.facts.statistics.max:
        return None
    match call.family:
        case "cross-entropy":
            if is_probabilities(output, class_axis(output)):
                return "probabilities that sum to 1 over the classes"
            if output.producer in SIGMOIDS and within_unit(output):
                return "the output of a sigmoid, all between 0 and 1"
        case "bce-logits":
            if output.producer in SQUASHERS and within_unit(output):
                return f"the output of a {output.producer}, all between 0 and 1"
        case "bce":
            if output.producer in SIGMOIDS and output.behind in SQUASHERS:
                return f"the {output.producer} of a {output.behind}"
        case "other":
            if call.options.get("applies") in AGAIN.get(output.producer or "", ()) and within_unit(output):
                return f"the output of a {output.producer}, all between 0 and 1"
        case "nll" | "ctc":
            if output.producer == "log_softmax" and output.behind in SQUASHERS:
                return f"the log-softmax of a {output.behind}"
    return None
