"""The gradients are cleared between the backward and the step."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.loop import UNHEARD, began, heard_steps, place_of, share_of, steps_before_backward
from sleuth.core.observation import Step
from sleuth.core.stage import Confidence, Severity, Stage

# A loop may throw a bad batch's gradient away now and then, and step all the same.
LEAST_TIMES = 3
SHARE = 0.5


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
    finds nothing (or zeros): the weights stay where they are, or follow momentum and weight decay only.""",
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
        erased = [s for s in steps if s.calls[-1] == "step-on-erased-gradient" and not steps_before_backward(s)]
        if len(erased) < least_times or share_of(erased, steps) < share:
            continue
        yield Evidence(
            summary=f"in {len(erased)} of {len(steps)} steps the gradient was cleared after the backward: "
            "the step had nothing to use",
            where=f"optimiser {number}" if len(by_optimiser) > 1 else None,
            location=place_of(seen, "zero_grad", optimiser=number) or place_of(seen, "step", optimiser=number),
            numbers={"erased": len(erased), "steps": len(steps)},
            first_step=began(steps, erased[0]),
            last_step=erased[-1].step,
            strength=len(erased) / len(steps),
        )
