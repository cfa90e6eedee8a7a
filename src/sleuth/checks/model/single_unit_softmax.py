"""Softmax over one output is 1, whatever the model says."""

from collections.abc import Iterator

from sleuth.checks.evidence.softmaxes import Softmax, features_of, has_complement, softmaxes, summed_over
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, LossCall
from sleuth.core.reading.lines import beside, producer_line
from sleuth.core.reading.wiring import CLASSIFIES, by_place
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Flow


@check(
    code="M208",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((LossCall, Flow),),
    explains=(
        "target-out-of-range", "forward-fails", "input-ignored", "collapsed-output", "cannot-overfit-one-batch",
        "loss-not-decreasing", "loss-oscillates", "initial-loss-off", "vanishing-gradients", "exploding-gradients",
        "zero-gradients", "disconnected-parameters", "step-changes-nothing", "learns-without-input", "loss-ignores-target",
        "learning-rate-too-high", "learning-rate-too-low", "update-too-small", "weights-do-not-change", "double-softmax",
        "signal-grows-or-fades", "saturated-units", "wrong-last-activation", "output-not-finite", "loss-not-finite",
        "gradient-not-finite", "capacity-too-small",
    ),
    title="Softmax over a single output is always 1",
    why="""Softmax shares 1 among its outputs. With one output there is nothing to share: the answer is 1 for every sample,
    its gradient is exactly zero, and no weight ever moves.""",
    fix="""For two classes with one output use sigmoid with BCELoss, or better BCEWithLogitsLoss on the raw score. Or give
    the last layer one unit a class and use CrossEntropyLoss. For a gate use sigmoid.""",
    decided_by="the width of the axis that softmax runs over",
    symptoms=(
        "output is always 1",
        "softmax with one output",
        "binary classifier always predicts 1",
        "predicts only one class",
        "gradients are zero",
    ),
)  # fmt: skip
def single_unit_softmax(seen: Seen) -> Iterator[Evidence | NotExamined]:
    for group in by_place(seen.all(LossCall)):
        # The logarithm of what it answers breaks the weights soon: what comes then tells nothing.
        outputs = [(call, o) for call in group if (o := call.argument("output")) is not None]
        reasons = [_reason(call, o) for call, o in outputs if o.facts.statistics.all_finite or o is outputs[0][1]]
        output, place = group[0].argument("output"), producer_line(group)
        if output is not None and all(reasons):
            yield Evidence(
                location=place or group[0].location,
                summary=f"{group[0].name}{beside(place, group[0].location)} is given {reasons[0]} of shape {output.facts.shape}",
                numbers={"shape": output.facts.shape, "producer": output.producer},
            )
            return
    flow = seen.maybe(Flow)
    for softmax in softmaxes(flow) if flow is not None else ():
        if softmax.length == 1 and features_of(softmax) == 1:
            yield _inside(softmax)
            return


def _inside(softmax: Softmax) -> Evidence:
    operation, along = softmax.operation, summed_over(softmax)
    # A mixture of one component, or one expert, has such a softmax too, and takes no harm.
    harm = ""
    if along is not None:
        harm = f", though it is to weigh {operation.shape[along]} positions against each other"
    elif has_complement(softmax):
        harm = ", and what is multiplied by one minus it never counts"
    gate = "Use sigmoid for a gate of one unit: sigmoid(score)."
    return Evidence(
        where=operation.layer or None,
        location=operation.location,
        summary=f"inside the model {operation.name} runs over an axis of one, the single unit of a layer "
        f"(shape {operation.shape}): its answer is 1 for every sample{harm}",
        severity=Severity.WARNING if harm else Severity.HINT,
        fix=gate if along is None else f"Run softmax over the positions: softmax(scores, dim={along}).",
        numbers={"shape": operation.shape, "axis": softmax.axis},
    )


def _reason(call: LossCall, output: Argument | None) -> str | None:
    if output is None or not output.facts.statistics.count:
        return None
    shape, values = output.facts.shape, output.facts.statistics
    if call.family in CLASSIFIES and len(shape) > 1 and shape[1] == 1:
        return "a single class, whose probability is always 1: an output"
    constant = {"softmax": 1.0, "log_softmax": 0.0}.get(output.producer or "")
    # A softmax over a batch of one is another illness: the wrong axis.
    over_batch = len(shape) > 1 and shape[0] == 1 and output.producer_axis == 0
    if constant is not None and values.all_finite and values.min == values.max == constant and not over_batch:
        return f"the {output.producer} of a single unit, {constant:g} for every sample: an output"
    return None
