"""The learning rate's scheduler steps before the optimiser."""

from collections.abc import Iterator

from sleuth.checks.evidence.loop import UNHEARD, began, heard_steps, place_of, since_backward
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Call, CallKind, Step
from sleuth.core.stage import Severity, Stage

LEAST_TIMES = 3
# Of the steps with a scheduler's.
SHARE = 0.5
OWN = (CallKind.SCHEDULER, CallKind.FIRST_SCHEDULER)


@check(
    code="T420",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step,),
    explains=("learning-rate-decayed-away",),
    title="The scheduler steps before the optimiser",
    why="""A scheduler's step sets the rate of the optimiser's next step. Called first, it skips the first value of the
    schedule, and every later one comes a step or an epoch too early: a warm-up begins too high, a decay too soon.""",
    fix="""Call scheduler.step() after optimizer.step(): at the end of every epoch, or right after the optimiser's step where the
    schedule counts batches.""",
    decided_by="the order of the two steps",
    symptoms=(
        "detected call of lr_scheduler.step() before optimizer.step()",
        "first learning rate is skipped",
        "learning rate is off by one epoch",
        "scheduler warning",
    ),
)
def scheduler_before_optimiser(
    seen: Seen, *, least_times: int = LEAST_TIMES, share: float = SHARE
) -> Iterator[Evidence | NotExamined]:
    by_optimiser = heard_steps(seen)
    if not by_optimiser:
        yield NotExamined(UNHEARD)
        return
    if not any(call.kind in (*OWN, CallKind.TOLD_SCHEDULER) for call in seen.all(Call)):
        yield NotExamined("no scheduler's step was heard")
        return
    for number, steps in by_optimiser.items():
        scheduled = [s for s in steps if any(kind in s.calls for kind in OWN)]
        between = [s for s in scheduled if any(kind in OWN for kind in since_backward(s)) and _fed(s)]
        if len(between) >= least_times and len(between) >= share * len(scheduled):
            yield Evidence(
                summary=f"in {len(between)} of {len(scheduled)} cases the scheduler stepped between the backward and the "
                "optimiser's step",
                location=place_of(seen, *OWN, optimiser=number),
                numbers={"before": len(between), "scheduled": len(scheduled)},
                first_step=began(steps, between[0]),
                last_step=between[-1].step,
            )
        elif _skips_the_first(seen, steps[0]):
            yield Evidence(
                summary="the scheduler stepped before the optimiser's first step: the first value of the schedule was never "
                f"used, training began at {_rate(steps[0])}",
                location=place_of(seen, CallKind.FIRST_SCHEDULER, optimiser=number),
                numbers={"lr": steps[0].lr},
                last_step=steps[-1].step,
            )


def _fed(step: Step) -> bool:
    """No other optimiser's step stood between this one and its backward."""
    return CallKind.BACKWARD in step.calls


def _skips_the_first(seen: Seen, first: Step) -> bool:
    """Once, and from a line that is called again later: whoever winds a schedule forward has a line of its own for that."""
    places = {c.location for c in seen.all(Call) if c.kind == CallKind.FIRST_SCHEDULER}
    again = {c.location for c in seen.all(Call) if c.kind == CallKind.SCHEDULER}
    skipped = any(kind.startswith("skipped") for kind in first.calls)
    once = 0 < first.counts.get(CallKind.FIRST_SCHEDULER, 0) <= len(places)
    return once and not skipped and bool(places & again - {None})


def _rate(step: Step) -> str:
    return "another one" if step.lr is None else f"{step.lr:.3g}"
