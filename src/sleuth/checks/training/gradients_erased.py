"""The gradients are cleared between the backward and the step."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, began, heard_steps, place_of, share_of, steps_before_backward
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.location import Location
from sleuth.core.observation import Call, CallKind, Step
from sleuth.core.stage import Confidence, Severity, Stage

# A loop may throw a bad batch's gradient away now and then, and step all the same.
LEAST_TIMES = 3
SHARE = 0.5
# In Step.counts.
ERASED = CallKind.ERASED_BACKWARD


@check(
    code="T411",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Step,),
    explains=(
        "weights-do-not-change",
        "zero-gradients",
        "vanishing-gradients",
        "update-too-small",
        "loss-not-decreasing",
        "loss-oscillates",
        "underfitting",
        "predicts-one-class",
        "learning-rate-too-low",
        "stopped-too-early",
        "frozen-parameters",
        "accumulation-not-scaled",
    ),
    title="Gradients are cleared before the step can use them",
    why="""The backward leaves its result in the gradients, and the step reads it there. With zero_grad in between, every step
    finds nothing (or zeros): the weights stay where they are, or follow momentum and weight decay only. Where several batches
    are added up, a zero_grad between them leaves only the last one.""",
    fix="""Move optimizer.zero_grad() to before loss.backward() or to after optimizer.step().""",
    decided_by="the order of backward, zero_grad and step",
    symptoms=(
        "loss does not decrease",
        "weights do not change",
        "model does not learn",
        "loss stuck",
        "gradients are none",
        "optimizer step does nothing",
    ),
)
def gradients_erased(seen: Seen, *, least_times: int = LEAST_TIMES, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    by_optimiser = heard_steps(seen)
    if not by_optimiser:
        yield NotExamined(UNHEARD)
        return
    if max(len(steps) for steps in by_optimiser.values()) < least_times:
        yield NotExamined(f"only {sum(len(steps) for steps in by_optimiser.values())} steps were seen")
        return
    for number, steps in by_optimiser.items():
        erased = [s for s in steps if s.calls[-1] == CallKind.STEP_ON_ERASED_GRADIENT and not steps_before_backward(s)]
        if len(erased) < least_times or share_of(erased, steps) < share:
            yield from _partly(seen, number, steps, least_times, share)
            continue
        yield Evidence(
            summary=f"in {len(erased)} of {len(steps)} steps the gradient was cleared after the backward: "
            "the step had nothing to use",
            where=f"optimiser {number}" if len(by_optimiser) > 1 else None,
            location=_eraser(seen, number, erased[0]) or place_of(seen, CallKind.STEP, optimiser=number),
            numbers={"erased": len(erased), "steps": len(steps)},
            first_step=began(steps, erased[0]),
            last_step=erased[-1].step,
            strength=len(erased) / len(steps),
        )


def _partly(seen: Seen, number: int, steps: list[Step], least_times: int, share: float) -> Iterator[Evidence]:
    """Several batches are to be added up, and only the last of them is left. An attack, a search or another loss has a backward
    of its own in another line."""
    partly = [s for s in steps if s.counts.get(ERASED, 0)]
    places = {c.location for c in seen.all(Call) if c.kind == CallKind.BACKWARD and c.optimiser in (number, -1)}
    if len(partly) < least_times or share_of(partly, steps) < share or len(places) != 1:
        return
    lost = sum(s.counts[ERASED] for s in partly)
    backwards = sum(s.counts.get(CallKind.BACKWARD, 0) for s in partly)
    yield Evidence(
        summary=f"in {len(partly)} of {len(steps)} steps the gradient was cleared between the backwards that lead to the step: "
        f"of {backwards} backwards {lost} were thrown away",
        where=None if number == 0 else f"optimiser {number}",
        location=_eraser(seen, number, partly[0]) or place_of(seen, CallKind.BACKWARD, optimiser=number),
        fix="Call optimizer.zero_grad() once a step, right after optimizer.step(), not once a batch.",
        numbers={"partly": len(partly), "steps": len(steps), "lost": lost, "backwards": backwards},
        # Training goes on, with a part of the data and smaller steps than meant.
        severity=Severity.WARNING,
        first_step=began(steps, partly[0]),
        last_step=partly[-1].step,
        strength=lost / backwards,
    )


def _eraser(seen: Seen, optimiser: int, first: Step) -> Location | None:
    """A loop may clear in several places; the last one that it came by before the first such step is the one."""
    calls = [c for c in seen.all(Call) if c.kind == CallKind.ZERO_GRAD and c.optimiser == optimiser and c.location is not None]
    met = [c for c in calls if c.step <= first.step]
    return met[-1].location if met else place_of(seen, CallKind.ZERO_GRAD, optimiser=optimiser)
