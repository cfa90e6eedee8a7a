"""Gradients are clipped when it is too late, or before they have their size."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, began, heard_steps, place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Call, CallKind, Step
from sleuth.core.stage import Confidence, Severity, Stage

LEAST_TIMES = 3
# Of the steps that came with a clipping.
SHARE = 0.5
WRONG = {
    CallKind.CLIP_ON_USED_GRADIENT: (
        "after the step that should have used them",
        "Move the clipping to between loss.backward() and optimizer.step().",
    ),
    CallKind.CLIP_ON_NOTHING: (
        "while there were none, before the backward",
        "Move the clipping to between loss.backward() and optimizer.step().",
    ),
    CallKind.CLIP_UNUSED: (
        "and the step took those from before: what the clipping returned was not used",
        "Hand on what it returns: grads, norm = clip_grad_norm(grads, max_norm), then step with these.",
    ),
    CallKind.CLIP_ON_SCALED_GRADIENT: (
        "while they were still multiplied by the scaler's factor, so the limit meant something else",
        "Call scaler.unscale_(optimizer) before the clipping.",
    ),
}


@check(
    code="T422",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(Step,),
    explains=(
        "exploding-gradients",
        "gradient-not-finite",
        "loss-not-finite",
        "loss-spikes",
        "loss-diverges",
        "loss-oscillates",
        "loss-not-decreasing",
        "update-too-large",
        "update-too-small",
        "weights-grow",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "vanishing-gradients",
        "underfitting",
        "precision-lost",
        "stopped-too-early",
    ),
    title="Gradients are clipped in the wrong place",
    why="""Clipping shortens the gradients that the next step will use. After the step it changes nothing; before a scaler
    has divided its factor out again, it cuts gradients down that are far below the limit.""",
    fix="""Clip between loss.backward() and optimizer.step(); with a scaler, after scaler.unscale_(optimizer).""",
    decided_by="the order of backward, unscaling, clipping and step",
    symptoms=(
        "gradient clipping has no effect",
        "gradients explode in spite of clipping",
        "training is slow with mixed precision and clipping",
        "clip_grad_norm does nothing",
    ),
)
def clipping_misplaced(seen: Seen, *, least_times: int = LEAST_TIMES, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    steps = sorted((s for own in heard_steps(seen).values() for s in own), key=lambda s: s.step)
    if not steps:
        yield NotExamined(UNHEARD)
        return
    if not any(call.kind.startswith("clip") for call in seen.all(Call)):
        yield NotExamined("no clipping was heard")
        return
    clipped = [s for s in steps if any(kind.startswith("clip") for kind in s.calls)]
    for kind, (how, fix) in WRONG.items():
        wrong = [s for s in clipped if kind in s.calls and CallKind.CLIP not in s.calls]
        if len(wrong) < least_times or len(wrong) < share * len(clipped):
            continue
        yield Evidence(
            summary=f"in {len(wrong)} of {len(clipped)} cases gradients were clipped {how}",
            location=place_of(seen, kind),
            numbers={"wrong": len(wrong), "clipped": len(clipped)},
            fix=fix,
            first_step=began(steps, wrong[0]),
            last_step=wrong[-1].step,
            strength=len(wrong) / len(clipped),
        )
