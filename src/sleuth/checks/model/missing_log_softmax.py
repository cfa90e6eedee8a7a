"""A loss that takes (log-)probabilities is given raw scores."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, LossCall
from sleuth.core.reading.lines import beside, output_line, producer_line
from sleuth.core.reading.wiring import by_place, class_axis, is_probabilities, rounding, sums_to_one
from sleuth.core.stage import Confidence, Severity, Stage

# Log-probabilities are at most zero; log(p + 1e-3) of a sure class is the most that careful people add.
ABOVE_ZERO = 0.01
JUDGED = ("nll", "bce", "kl", "ctc", "probabilities")


@check(
    code="M206",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(LossCall,),
    explains=(
        "forward-fails", "cannot-overfit-one-batch", "loss-not-decreasing", "loss-diverges", "loss-oscillates",
        "initial-loss-off", "vanishing-gradients", "exploding-gradients", "learning-rate-too-high", "learning-rate-too-low",
        "step-changes-nothing",
        "learns-without-input", "loss-not-finite", "collapsed-output", "wrong-last-activation", "weights-grow",
        "capacity-too-small",
    ),
    title="Raw scores go into a loss that takes probabilities",
    why="""NLL reads its input as log-probabilities, BCE as probabilities. Given raw scores, NLL falls without bound as the
    scores grow, and BCE takes the logarithm of negative numbers; neither measures how right the answer is.""",
    fix="""Use the loss that starts from raw scores: CrossEntropyLoss instead of NLLLoss, BCEWithLogitsLoss instead of BCELoss.
    Or end the model with log_softmax (for NLL) or sigmoid (for BCE). In Keras give the loss from_logits=True.""",
    decided_by="the range of values that the loss is given",
    symptoms=(
        "loss is negative",
        "NLLLoss gives negative values",
        "BCELoss: all elements of input should be between 0 and 1",
        "loss goes to minus infinity",
    ),
)  # fmt: skip
def missing_log_softmax(seen: Seen, *, above_zero: float = ABOVE_ZERO) -> Iterator[Evidence | NotExamined]:
    calls = seen.all(LossCall)
    if not any(call.family in JUDGED for call in calls) and any(call.family == "other" for call in calls):
        yield NotExamined(f"what {calls[0].name} does with the output is not known")
    for group in by_place(calls):
        for call in group:
            output = call.argument("output")
            reason = _reason(call, output, above_zero) if output is not None else None
            if output is not None and reason is not None:
                values, place = output.facts.statistics, producer_line(group) or output_line(group)
                yield Evidence(
                    location=place or call.location,
                    summary=f"{call.name}{beside(place, call.location)} is given {reason}: values from {values.min:.3g} "
                    f"to {values.max:.3g}",
                    numbers={"min": values.min, "max": values.max, "producer": output.producer},
                )
                break


def _reason(call: LossCall, output: Argument, above_zero: float) -> str | None:
    values = output.facts.statistics
    if not output.facts.shape or values.nans or not values.finite:
        return None
    axis = class_axis(output)
    match call.family:
        case "nll" if values.max > above_zero:
            if is_probabilities(output, axis):
                return "probabilities instead of their logarithms"
            return "raw scores instead of log-probabilities, which are never above 0"
        case "bce" if values.min < -rounding(output) or values.max > 1 + rounding(output):
            return "raw scores instead of probabilities between 0 and 1"
        case "probabilities" if values.min < -rounding(output) or values.max > 1 + rounding(output):
            return "raw scores instead of probabilities that sum to 1 over the classes"
        case "ctc" if _no_logarithms(output, len(output.facts.shape) - 1, above_zero):
            if is_probabilities(output, len(output.facts.shape) - 1):
                return "probabilities instead of their logarithms"
            return "raw scores instead of log-probabilities, which sum to 1 over the classes once exp is taken"
        case "kl" if values.max > above_zero and any(is_probabilities(output, a) for a in (axis, len(output.facts.shape) - 1)):
            return "probabilities instead of their logarithms"
        case "kl" if not call.options.get("log_target") and _compared_with_raw(call, output, above_zero):
            return "raw scores instead of log-probabilities, while the target is one of probabilities"
    return None


def _no_logarithms(output: Argument, axis: int, above_zero: float) -> bool:
    """No log-probabilities over this axis. Sums are not there when a value is above zero, or when the array is too large."""
    if output.facts.statistics.max > above_zero:
        return True
    return bool(output.exp_sums) and not sums_to_one(output, axis, log=True)


def _compared_with_raw(call: LossCall, output: Argument, above_zero: float) -> bool:
    target = call.argument("target") or next((a for a in call.arguments if a.facts.path == "target"), None)
    if target is None or target.facts.shape != output.facts.shape:
        return False
    axes = [a for a in range(1, len(target.facts.shape)) if is_probabilities(target, a)]
    return bool(axes) and all(_no_logarithms(output, a, above_zero) for a in axes)
