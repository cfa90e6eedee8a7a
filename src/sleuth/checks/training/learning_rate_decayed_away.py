"""The learning rate fell to almost nothing while much of the training still followed."""

from collections.abc import Iterator

import numpy as np

from sleuth.checks.evidence.loop import place_of
from sleuth.checks.evidence.progress import progress_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.location import Location
from sleuth.core.observation import Call, CallKind, Step
from sleuth.core.reading.curve import line
from sleuth.core.stage import Confidence, Severity, Stage

# Of the largest rate: fine-tuning after a first phase goes down a hundred- or a thousandfold, on purpose.
GONE = 1e-4
# Of the training. Schedules that end with it are this low only at their very end: a cosine for the last half percent, five
# decays to a tenth, evenly spread, for the last sixth.
WASTED = 0.25
# So much of it is no slip any more.
HALF = 0.5
# Fewer say nothing about a schedule.
LEAST_STEPS = 8
# Steps that go by at that rate.
LEAST_WASTED = 100
# A schedule that waits for a plateau cannot come down so far within so few steps.
TOO_SOON = 30
# Steps that a training may need to leave its first plateau: a rate that has come down before never gave it the time.
FIRST_PLATEAU = 150
# Of the largest rate: alive.
ALIVE = 0.1
# Standard errors by which the loss must have been falling while the rate came down.
ERRORS = 2.0
# Of the steps that call the scheduler, for it to be one at every step.
EVERY_STEP = 0.9


@check(
    code="T419",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=(Step, Call),
    explains=("underfitting", "loss-not-decreasing", "update-too-small", "weights-do-not-change", "stopped-too-early"),
    title="The learning rate fell to almost nothing too soon",
    why="""A step is the gradient times the rate. After the rate has come down ten thousandfold nothing is learned any more,
    however long the training goes on. The usual reason is a schedule made for epochs that is stepped after every batch.""",
    fix="Make the schedule as long as the training.",
    symptoms=(
        "loss stops decreasing after a few steps",
        "learning rate becomes zero",
        "learning rate is too small after scheduler",
        "scheduler decays too fast",
        "should I call scheduler.step every batch or every epoch",
        "loss plateaus early",
    ),
    decided_by="the learning rate over the steps, and how many steps still follow",
)
def learning_rate_decayed_away(seen: Seen, *, gone: float = GONE, wasted: float = WASTED) -> Iterator[Evidence | NotExamined]:
    steps = seen.all(Step)
    rated = False
    for optimiser in sorted({s.optimiser for s in steps}):
        own = [s for s in steps if s.optimiser == optimiser and s.lr is not None]
        rates = np.array([s.lr for s in own])
        if not len(own) or rates.max() <= 0:
            continue
        rated = True
        if len(own) < LEAST_STEPS:
            yield NotExamined(f"only {len(own)} steps were seen")
            continue
        low = rates < gone * rates.max()
        # For good: a rate that comes up again has been meant to go down.
        since = len(rates) - int(np.argmin(low[::-1])) if not low.all() else 0
        left = own[-1].step - own[since].step if since < len(own) else 0
        share = 1 - since / len(own)
        if share < wasted or left < LEAST_WASTED or not _cut_short(own, since):
            continue
        yield _evidence(seen, own, since, share, gone)
    if not rated:
        yield NotExamined("no learning rate above zero was seen")


def _cut_short(steps: list[Step], since: int) -> bool:
    """Was there still something to learn? A schedule that waits for a plateau comes down when there is not."""
    if steps[since].step - steps[0].step < TOO_SOON:
        return True
    before = np.array([s.loss for s in steps[:since] if s.loss is not None])
    if len(before) < TOO_SOON:
        return True
    rates = np.array([s.lr for s in steps[:since]])
    alive = int(np.flatnonzero(rates >= ALIVE * rates.max())[-1]) + 1
    course = line(before[: max(TOO_SOON // 3, alive)])
    return course.fall > ERRORS * course.error or _never_began(steps[:since], alive)


def _never_began(steps: list[Step], alive: int) -> bool:
    """A schedule that goes by the clock came down while the loss had not even left its start."""
    by_clock = any(_schedules(call) and "told" not in call for s in steps for call in s.calls)
    if not by_clock or steps[alive - 1].step - steps[0].step >= FIRST_PLATEAU:
        return False
    progress = progress_of(steps)
    return progress is not None and not progress.works and not progress.worsened


def _evidence(seen: Seen, steps: list[Step], since: int, share: float, gone: float) -> Evidence:
    largest = max(s.lr for s in steps if s.lr is not None)
    at, last = steps[since].step, steps[-1]
    heard = [s for s in steps if s.calls]
    often = sum(any(_schedules(call) for call in s.calls) for s in heard) > EVERY_STEP * len(heard)
    length = last.step - steps[0].step + 1
    every = "; the scheduler is stepped after every batch" if often else ""
    return Evidence(
        location=_scheduler(seen, ended=last.lr == 0),
        summary=f"the learning rate went from {largest:.2g} to below {gone * largest:.1g} by step {at:,} and is {last.lr:.2g} at "
        f"step {last.step:,}: {share:.0%} of the training changes nothing{every}",
        fix="Call scheduler.step() once an epoch, after the loop over the batches; or, if it is meant for every batch, give the "
        f"schedule as many steps as the training has ({length:,})."
        if often
        else f"Make the schedule as long as the training ({length:,} steps), or let it end at a rate above zero.",
        numbers={"largest": largest, "last": last.lr, "step": at, "share": share, "scheduler_at_every_step": often},
        series=(Series("learning rate", tuple(float(s.step) for s in steps), tuple(float(s.lr or 0) for s in steps)),),
        first_step=steps[0].step,
        last_step=last.step,
        severity=None if share >= HALF else Severity.WARNING,
        strength=share / WASTED,
    )


def _scheduler(seen: Seen, ended: bool) -> Location | None:
    """A schedule that has run out is too short; one that goes on and on is stepped too often."""
    if ended and (made := place_of(seen, CallKind.MADE_SCHEDULER)) is not None:
        return made
    found = next((c.location for c in seen.all(Call) if _schedules(c.kind) and c.location is not None), None)
    return found or place_of(seen, CallKind.SETS_RATE)


def _schedules(call: str) -> bool:
    return "scheduler" in call and "another" not in call
