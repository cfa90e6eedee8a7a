"""The last activation cannot reach the targets."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Argument, LossCall
from sleuth.core.reading.wiring import sums_to_one
from sleuth.core.stage import Confidence, Severity, Stage

# What the activation can give at most.
RANGES = {
    "relu": (0.0, float("inf")),
    "relu6": (0.0, 6.0),
    "softplus": (0.0, float("inf")),
    "sigmoid": (0.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "hardtanh": (-1.0, 1.0),
    "exp": (0.0, float("inf")),
    "softmax": (0.0, 1.0),
    "log_softmax": (float("-inf"), 0.0),
    "logsigmoid": (float("-inf"), 0.0),
}
# Targets a hair outside (rounding, smoothing) do no harm; a tenth of the targets' own spread does.
MARGIN = 0.1
REGRESSION = ("mse", "l1", "huber")
SCORES = ("cross-entropy", "bce-logits")
# Squashed scores are double-softmax's business; these cut the range without making probabilities.
BOUNDED_SCORES = ("relu", "relu6", "tanh", "hardtanh", "softplus")
EACH_BY_ITSELF = ("sigmoid", "hardsigmoid")
# Two answers that are no shares of a whole are common where there are two classes.
FEWEST_CLASSES = 3


@check(
    code="M210",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(LossCall,),
    explains=(
        "cannot-overfit-one-batch",
        "loss-not-decreasing",
        "underfitting",
        "dead-units",
        "initial-loss-off",
        "target-not-scaled",
        "disconnected-parameters",
        "capacity-too-small",
    ),
    title="The last activation cannot reach the targets",
    why="""An activation at the very end bounds what the model can say. Targets outside that range can never be met,
    and the gradient at the bound is zero, so training pushes against a wall.""",
    fix="""Remove the activation after the last layer, or scale the targets into its range.""",
    decided_by="the range of the last activation against that of the targets",
    symptoms=(
        "predictions are never negative",
        "output only between 0 and 1",
        "predictions are cut off",
        "relu after the last layer",
        "tanh at the end cannot reach the targets",
    ),
)
def wrong_last_activation(seen: Seen, *, margin: float = MARGIN) -> Iterator[Evidence | NotExamined]:
    for call in seen.all(LossCall)[:1]:
        output, target = call.argument("output"), call.argument("target")
        if output is None or output.producer not in RANGES:
            return
        if call.family in REGRESSION and target is not None:
            yield from _unreachable(output, target, margin)
        elif call.family in SCORES and output.producer in BOUNDED_SCORES:
            low, high = RANGES[output.producer]
            shown = f"[{low:g}, {high:g}]" if high != float("inf") else "numbers above 0"
            yield Evidence(
                location=output.producer_location,
                summary=f"{call.name} takes scores of any sign and size, but a final {output.producer} lets only {shown} through",
                fix=f"Remove the {output.producer} after the last layer: the loss does its own squashing.",
                confidence=Confidence.LIKELY,
            )
        elif call.family == "probabilities" and output.producer in EACH_BY_ITSELF:
            yield from _no_shares(call, output, target)


def _no_shares(call: LossCall, output: Argument, target: Argument | None) -> Iterator[Evidence]:
    """One class is right, and the answers for all of them are made each by itself."""
    axis = len(output.facts.shape) - 1
    if axis < 1 or output.facts.shape[axis] < FEWEST_CLASSES or sums_to_one(output, axis) or not output.axis_sums:
        return
    if target is not None and target.facts.shape == output.facts.shape and not sums_to_one(target, axis):
        return  # several at once: the loss is the wrong one
    low, high = output.axis_sums[axis]
    yield Evidence(
        location=output.producer_location,
        summary=f"{call.name} wants shares of the classes, which sum to 1; a final {output.producer} makes each by itself: they "
        f"sum to {low:.3g} … {high:.3g}",
        fix=f"End in a softmax instead of the {output.producer}.",
        confidence=Confidence.LIKELY,
        numbers={"least_sum": low, "largest_sum": high},
    )


def _unreachable(output: Argument, target: Argument, margin: float) -> Iterator[Evidence]:
    low, high = RANGES[str(output.producer)]
    statistics = target.facts.statistics
    slack = margin * statistics.std
    if low - slack <= statistics.min and statistics.max <= high + slack:
        return
    beyond = f"down to {statistics.min:.3g}" if statistics.min < low - slack else f"up to {statistics.max:.3g}"
    limit = f"below {low:g}" if statistics.min < low - slack else f"above {high:g}"
    yield Evidence(
        location=output.producer_location,
        summary=f"the model ends in {output.producer}, which gives nothing {limit}, but the targets go {beyond}",
        fix=f"Remove the {output.producer} after the last layer, or scale the targets into its range.",
        numbers={"target_min": statistics.min, "target_max": statistics.max},
        strength=max(low - statistics.min, statistics.max - high) / max(statistics.std, 1e-12),
    )
