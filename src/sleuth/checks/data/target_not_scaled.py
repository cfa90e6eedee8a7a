"""A regression target on another scale than the model's outputs."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Batch, LossCall, Split
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics

REGRESSION_LOSSES = ("mse", "l1", "huber")
CLASS_LOSSES = ("cross-entropy", "nll", "bce", "bce-logits", "hinge")
# An untrained network answers within about one unit, and Adam at 1e-3 moves an output by some hundredths a step:
# twenty units away, hundreds of steps pass before it begins to learn.
FAR = 20.0
# Around a well-set mean a network reaches ten times its own spread soon, a hundred times not.
WIDE = 100.0
# Targets so small that their squared error vanishes beside the outputs' own spread.
TINY = 1e-4
# The first batches are the ones that the loss was seen with.
OBSERVED = 8


@check(
    code="D119",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    reads=(Batch, LossCall),
    explains=(
        "initial-loss-off",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-finite",
        "gradient-not-finite",
        "cannot-overfit-one-batch",
        "exploding-gradients",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "learns-without-input",
        "update-too-large",
        "underfitting",
        "dead-units",
        "capacity-too-small",
    ),
    title="The target is on another scale than the outputs",
    why="""An untrained network answers with numbers around zero and of size one. When targets lie far from that, the first
    gradients only push the outputs there: they are huge, they drown what tells samples apart, and a rate that survives them is
    too small for the rest.""",
    fix="""Standardise the target with the training set's figures, y = (y - mean) / std, and undo it for predictions; or set the
    last bias to the mean and multiply the outputs by the standard deviation.""",
    decided_by="mean and spread of the targets against the untrained model's answers",
    symptoms=(
        "regression loss is huge",
        "mse in the thousands",
        "model predicts the mean for everything",
        "loss is nan in regression",
        "regression does not learn",
    ),
)
def target_not_scaled(seen: Seen, *, far: float = FAR, wide: float = WIDE) -> Iterator[Evidence | NotExamined]:
    calls = [c for c in seen.all(LossCall) if _is_regression(c)]
    if not calls and any(c.family not in CLASS_LOSSES for c in seen.all(LossCall)):
        yield NotExamined("no loss was seen to compare the output with a real-valued target")
        return
    # The scale of an autoencoder's target is that of its input, and judged there.
    found = [e for c in calls if not _compares_with_input(c, seen) and (e := _judge(c, far, wide)) is not None]
    if found:
        yield max(found, key=lambda e: e.strength)


def _judge(call: LossCall, far: float, wide: float) -> Evidence | None:
    output, target = _statistics(call, "output"), _statistics(call, "target")
    if not target.finite or not output.finite or not output.all_finite:
        return None
    unit = max(output.std, 1.0)
    distance = abs(target.mean - output.mean)
    # Where the target itself lies near zero, it is the model that answers too loudly.
    apart = distance > far * unit and abs(target.mean) > far
    too_small = target.std > 0 and target.rms < TINY and output.rms > wide * target.rms
    if not apart and target.std <= wide * unit and not too_small:
        return None
    return Evidence(
        where="target",
        location=call.location,
        summary=f"the target is {target.mean:.4g} ± {target.std:.3g}, "
        f"the untrained model answers {output.mean:.3g} ± {output.std:.3g}",
        numbers={
            "target_mean": target.mean,
            "target_std": target.std,
            "output_mean": output.mean,
            "output_std": output.std,
        },
        confidence=Confidence.LIKELY if call.family in REGRESSION_LOSSES else Confidence.POSSIBLE,
        strength=max(distance / (far * unit), target.std / (wide * unit), 1.0),
    )


def _is_regression(call: LossCall) -> bool:
    output, target = call.argument("output"), call.argument("target")
    if output is None or target is None:
        return False
    if call.family in REGRESSION_LOSSES:
        return True
    # A loss of the user's own: only where its value shows that it compares the two as they are.
    alike = output.facts.shape == target.facts.shape and target.facts.is_float
    apart = abs(target.facts.statistics.mean - output.facts.statistics.mean)
    return call.family == "other" and alike and call.value is not None and call.value > apart / 2


def _compares_with_input(call: LossCall, seen: Seen) -> bool:
    """An autoencoder's target is its input."""
    its = _statistics(call, "target")
    return any(
        x.statistics.count == its.count and (x.statistics.min, x.statistics.max) == (its.min, its.max)
        for batch in seen.batches(Split.TRAIN)[:OBSERVED]
        for x in batch.inputs
    )


def _statistics(call: LossCall, role: str) -> Statistics:
    argument = call.argument(role)
    assert argument is not None  # _is_regression has seen to it
    return argument.facts.statistics
