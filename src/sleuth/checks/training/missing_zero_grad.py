"""Gradients of earlier steps pile up."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, began, heard_steps, place_of, share_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import CallKind, Pending, Step
from sleuth.core.stage import Confidence, Severity, Stage

# Once may be an accident that was handled, such as a batch that was left out.
LEAST_TIMES = 3
# Of the steps: a loop that clears now and then, once an epoch say, still piles up most of the time.
SHARE = 0.2
# A first step cannot use an old gradient; with fewer after it nothing is seen.
LEAST_STEPS = 4
USED = CallKind.STEP_ON_USED_GRADIENT
SKIPPED = CallKind.SKIPPED_ON_USED_GRADIENT


@check(
    code="T410",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((Step, Pending),),
    explains=(
        "exploding-gradients",
        "gradient-not-finite",
        "loss-not-finite",
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "update-too-large",
        "weights-grow",
        "units-dying",
        "dead-units",
        "saturated-units",
        "precision-lost",
        "accumulation-not-scaled",
        "learning-rate-too-high",
        "underfitting",
        "overfitting",
        "predicts-one-class",
        "vanishing-gradients",
        "zero-gradients",
        "stopped-too-early",
    ),
    title="Gradients of earlier steps pile up",
    why="""Each backward adds to the gradient that is already there. Where nobody clears it after a step has used it, every step
    follows the sum of all earlier gradients: it grows, and points to where the loss fell long ago.""",
    fix="""Call optimizer.zero_grad() in every iteration, before loss.backward(). To add up several batches on purpose,
    clear after each optimizer.step().""",
    decided_by="a step that uses a gradient which an earlier step already used",
    symptoms=(
        "forgot zero_grad",
        "loss goes up",
        "loss oscillates",
        "gradients keep growing",
        "gradient norm grows every step",
        "model gets worse with every batch",
    ),
)
def missing_zero_grad(seen: Seen, *, least_times: int = LEAST_TIMES, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    by_optimiser = heard_steps(seen)
    skipped = max((p.counts.get(SKIPPED, 0) for p in seen.all(Pending)), default=0)
    if skipped >= least_times:
        yield Evidence(
            summary=f"the scaler leaves out step after step ({skipped} so far): a gradient that was too large once was never "
            "cleared, and every backward adds to it",
            location=place_of(seen, CallKind.BACKWARD),
            numbers={"skipped": skipped},
        )
    for number, steps in by_optimiser.items():
        used = [step for step in steps if step.calls[-1] == USED]
        if len(used) < least_times or share_of(used, steps) < share:
            continue
        cleared = sum(CallKind.ZERO_GRAD in step.calls for step in steps)
        yield Evidence(
            summary=f"{len(used)} of {len(steps)} steps used a gradient that earlier steps had used before: "
            + (
                "zero_grad is never called"
                if not cleared
                else f"zero_grad comes before {cleared} of them, or clears something else"
            ),
            where=f"optimiser {number}" if len(by_optimiser) > 1 else None,
            location=place_of(seen, CallKind.BACKWARD, optimiser=number),
            numbers={"used_again": len(used), "steps": len(steps), "cleared": cleared},
            first_step=began(steps, used[0]),
            last_step=used[-1].step,
            strength=share_of(used, steps),
        )
    if skipped < least_times and (reason := _unseen(by_optimiser)) is not None:
        yield NotExamined(reason)


def _unseen(by_optimiser: dict[int, list[Step]]) -> str | None:
    steps = [step for own in by_optimiser.values() for step in own]
    if not steps:
        return UNHEARD
    if max(len(own) for own in by_optimiser.values()) < LEAST_STEPS:
        return f"only {len(steps)} steps were seen"
    if all(step.calls[-1] == CallKind.STEP_ON_GIVEN_GRADIENT for step in steps):
        return "the gradients were put there by the loop itself, not by a backward"
    return None
