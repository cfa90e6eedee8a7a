"""NaN or Inf leaves the untrained model."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Frame, LossCall, NotFinite, Origin, Role, Split
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.statistics import Statistics


@check(
    code="M202",
    stage=Stage.MODEL,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Role.ACTIVATION,),
    explains=(
        "forward-fails", "backward-fails", "loss-not-finite", "gradient-not-finite", "initial-loss-off", "loss-diverges",
        "loss-not-decreasing", "cannot-overfit-one-batch", "exploding-gradients", "step-changes-nothing",
        "capacity-too-small",
    ),
    title="NaN or Inf leaves the untrained model",
    why="""One operation made a number that is not finite from finite ones: the logarithm of zero, a division by zero, an
    overflow. Everything computed from it is lost, the loss and every gradient included.""",
    fix="""Keep the operation named here away from the value that breaks it: log(x + 1e-6), x / (y + 1e-6), clamp before exp,
    or subtract the maximum first. If the weights themselves hold NaN, load another checkpoint.""",
    decided_by="the first layer whose output is not finite while its input is",
    symptoms=(
        "model outputs nan",
        "output is nan before any training",
        "loss is nan at the first step",
        "predictions are inf",
        "untrained model gives nan",
    ),
)  # fmt: skip
def output_not_finite(seen: Seen) -> Iterator[Evidence | NotExamined]:
    if any(met.what == "loss" for met in seen.all(NotFinite)):
        yield NotExamined("the training's own loss is not finite: loss-not-finite tells at which step, and where it is born")
        return
    spoilt = {b.index for b in seen.batches(Split.TRAIN) if b.bad_inputs}
    frames = seen.before_steps(seen.frames(Role.ACTIVATION))
    clean = [f for f in frames if f.step not in spoilt]
    if not clean:
        yield NotExamined("the inputs themselves are not finite")
        return
    # Calls of a loss do not say of which batch they were: with a bad batch among them only the layers can be asked.
    calls = seen.all(LossCall) if len(clean) == len(frames) else []
    outputs = [a.facts.statistics for call in calls if (a := call.argument("output")) is not None and a.facts.shape]
    outputs = outputs or [list(frame.statistics().values())[-1] for frame in clean]
    bad = next((o for o in outputs if not o.all_finite), None)
    if bad is not None and (bad.nans or not _loss_is_finite(seen)):
        yield _evidence(seen, clean, bad)


def _loss_is_finite(seen: Seen) -> bool:
    """Masked scores of −inf are meant, as long as the loss can live with them."""
    calls = seen.all(LossCall)
    return bool(calls) and all(call.value is not None for call in calls)


def _evidence(seen: Seen, frames: list[Frame], output: Statistics) -> Evidence:
    counts = {"nans": output.nans, "infs": output.infs}
    made = f"{output.nans} NaN and {output.infs} Inf among {output.count} outputs"
    weights = [w.path for w in seen.first(Role.WEIGHT) if not w.statistics.all_finite]
    if weights:
        return Evidence(where=weights[0], summary=f"{made}: the weight {weights[0]} itself holds NaN or Inf", numbers=counts)
    origin = next((o for o in seen.all(Origin) if o.direction == "forward"), None)
    if origin is not None:
        ranges = " and ".join(f"{low:.3g} … {high:.3g}" for low, high in origin.inputs[:2])
        place = f" in layer {origin.layer}" if origin.layer else ""
        return Evidence(
            where=origin.layer,
            location=origin.location,
            summary=f"{made}: they are born in {origin.operation}{place}, which is given values of {ranges}",
            numbers={**counts, "operation": origin.operation},
        )
    bad = [path for frame in frames for path, s in frame.statistics().items() if not s.all_finite]
    first = bad[0] if bad else None
    return Evidence(where=first, summary=f"{made}: {first or 'the output'} is the first that is not finite", numbers=counts)
