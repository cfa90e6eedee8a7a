"""The loss became NaN or Inf."""

from collections.abc import Iterator

from sleuth.checks.evidence.blame import born_in, came_in, causes_at, line_of, origin_at, samples_blamed, suspect_at
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Batch, CallKind, LossCall, NotFinite, Origin, Step
from sleuth.core.reading.stable_form import stable_form
from sleuth.core.stage import Confidence, Severity, Stage


@check(
    code="T401",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((LossCall, Step, NotFinite),),
    explains=("loss-diverges", "loss-not-decreasing", "weights-do-not-change", "backward-fails", "capacity-too-small"),
    title="The loss is not a finite number",
    why="""From a loss of NaN or Inf every gradient is NaN, and one step writes NaN into every weight. It is born in one
    operation: a logarithm of zero, a division by zero, an overflow.""",
    fix="""Keep the operation named here away from the value that breaks it: use the loss that takes raw scores
    (cross_entropy, binary_cross_entropy_with_logits), or add a small constant inside log, sqrt and divisions.""",
    decided_by="the first operation that makes NaN or Inf from finite values",
    symptoms=(
        "loss is nan",
        "loss goes down then nan",
        "loss becomes inf",
        "log of zero in the loss",
    ),
)
def loss_not_finite(seen: Seen) -> Iterator[Evidence | NotExamined]:
    met = next((n for n in seen.all(NotFinite) if n.what == "loss"), None)
    if met is not None:
        yield _in_training(seen, met)
        return
    bad_batches = {b.index for b in seen.all(Batch) if b.bad_inputs or b.bad_targets}
    # A loss that is not one number has no value either; that is another complaint.
    lost = [c for c in seen.all(LossCall) if c.value is None and not c.failed and c.output_shape in ((), (1,))]
    if lost and not bad_batches:
        yield _at_start(seen, lost[0])
        return
    # A step that no backward fed has no loss at all; what a scaler skipped it has seen to itself.
    steps = [s for s in seen.all(Step) if s.loss is None and s.heard and CallKind.SKIPPED not in s.calls]
    if steps and not lost:
        before = [s.loss for s in seen.all(Step) if s.loss is not None and s.step < steps[0].step]
        course = f" after {before[0]:.3g} at the first step and {before[-1]:.3g} just before" if before else ""
        yield Evidence(
            summary=f"the loss is NaN or Inf at step {steps[0].step}{course}",
            first_step=steps[0].step,
            last_step=steps[-1].step,
            numbers={"step": steps[0].step},
        )


def _in_training(seen: Seen, met: NotFinite) -> Evidence:
    before = [s.loss for s in seen.all(Step) if s.loss is not None and s.step < met.step]
    course = f" after {before[0]:.3g} at the first step and {before[-1]:.3g} just before" if before else ""
    origin, blamed, suspect = origin_at(seen, met.step), samples_blamed(seen, met.step), suspect_at(seen, met.step)
    parts = [f"the loss is {'NaN' if met.nans else 'Inf'} at step {met.step}{course}"]
    parts += [blamed] if blamed else []
    parts += [born_in(origin)] if origin is not None else []
    # A gradient that was not finite has written NaN into every weight: that is gradient-not-finite's business.
    spoilt = any(n.what == "gradient" and n.step < met.step for n in seen.all(NotFinite))
    parts += [] if spoilt else came_in(causes_at(seen, met.step))
    last = [s.step for s in seen.all(Step) if s.loss is None]
    return Evidence(
        where=origin.layer if origin is not None else None,
        location=(origin.location if origin is not None else None) or line_of(seen, CallKind.BACKWARD),
        fix=None if origin is None else stable_form(origin),
        summary="; ".join(parts),
        first_step=met.step,
        last_step=max([met.step, *last]),
        numbers={
            "step": met.step,
            **({"sample": suspect.index, "position": suspect.position} if suspect is not None else {}),
            **({"operation": origin.operation, "direction": origin.direction} if origin is not None else {}),
        },
    )


def _at_start(seen: Seen, call: LossCall) -> Evidence:
    origin = next((o for o in seen.all(Origin) if o.direction == "forward"), None)
    if origin is None:
        return Evidence(summary=f"{call.name} gives NaN or Inf for the untrained model", location=call.location)
    ranges = " and ".join(f"{low:.3g} … {high:.3g}" for low, high in origin.inputs[:2])
    given = f", which is given values of {ranges}" if ranges else ""
    return Evidence(
        where=origin.layer,
        location=origin.location or call.location,
        summary=f"the loss of the untrained model is NaN or Inf: it is born in {origin.operation}{given}",
        fix=stable_form(origin),
        numbers={"operation": origin.operation, "nans": origin.nans, "infs": origin.infs},
    )
