"""A smaller learning rate lowers the loss that this one drives up."""

import math
from collections.abc import Iterator

import numpy as np

from sleuth.checks.evidence.loop import place_of
from sleuth.checks.evidence.rising_rate import Climb, climb
from sleuth.checks.evidence.runaway_weights import runaway
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import CallKind, NotFinite, Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Overfit, RangeTest

# Of the start: what the smaller rate has to gain for its gain to be no chance.
CLEAR_FALL = 0.1
# Of what the smaller rate gains: a rate that gains less only throws the weights about.
LITTLE = 0.1
NOISES = 3.0
# Large rates often raise the loss at first and lower it soon after: so many steps must have gone by.
LEAST_STEPS = 30
# Where a rate is known only to be far too high, one that most models and optimisers can start with.
STARTING = 1e-3
# Times the start: from further up the way down is longer than any trial.
NEAR = 1.5
# What says how the rate goes on, the best line first.
SCHEDULES = (CallKind.MADE_SCHEDULER, CallKind.SETS_RATE, CallKind.SCHEDULER)


@check(
    code="H501",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    reads=((RangeTest, NotFinite, Step),),
    explains=(
        "loss-not-decreasing",
        "loss-diverges",
        "loss-oscillates",
        "loss-spikes",
        "loss-not-finite",
        "gradient-not-finite",
        "cannot-overfit-one-batch",
        "exploding-gradients",
        "update-too-large",
        "weights-grow",
        "units-dying",
        "predicts-one-class",
        "underfitting",
        "capacity-too-small",
    ),
    title="The learning rate is too high",
    why="""Each step follows the slope at one point. A step that is too long leaps over the valley and lands higher than it
    began, so the loss swings, rises, or the weights end where no gradient is left.""",
    fix="Lower the learning rate.",
    decided_by="short trainings from the same start at your rate and at smaller ones; the loss beside a rate that only rises",
    symptoms=(
        "loss goes down then nan",
        "loss is nan",
        "loss does not decrease",
        "loss goes up",
        "loss explodes",
        "loss oscillates",
        "accuracy does not improve",
        "predicts only one class",
    ),
)
def learning_rate_too_high(
    seen: Seen, *, clear_fall: float = CLEAR_FALL, little: float = LITTLE
) -> Iterator[Evidence | NotExamined]:
    if (found := climb(seen)) is not None:
        yield _risen(seen, found)
        return
    if seen.maybe(RangeTest) is None:
        yield _in_training(seen)
        return
    test = seen.one(RangeTest)
    if not test.current or not test.runs:
        yield NotExamined("there is no learning rate above zero")
        return
    start, end = next((s, e) for rate, s, e in test.runs if rate == test.current)
    smaller = [(s - e, rate, e) for rate, s, e in test.runs if rate < test.current / 2 and e is not None]
    gain, rate, lower = max(smaller, default=(0.0, 0.0, 0.0))
    helps = gain > max(clear_fall * abs(start), NOISES * test.noise / 2)
    if end is not None and start - end > little * max(gain, 0.0) + NOISES * test.noise / 2:
        return
    if not helps:
        if end is None:
            yield NotExamined("the loss blows up at this rate, and at the smaller ones that were tried it does not fall")
        return
    # At the full rate from the first step on: a training that warmed up to it did not do that.
    if (end is not None or _warms_up(seen, test.current)) and (reason := _why_not_said(seen, test, start)) is not None:
        yield NotExamined(reason)
        return
    what = "becomes NaN or infinite" if end is None else f"goes from {start:.3g} to {end:.3g}"
    best = test.suggested if test.suggested and test.suggested < test.current / 2 else rate
    yield Evidence(
        summary=f"in {test.run_steps} steps at {test.current:g} the loss {what}; from the same start at {rate:.1g} it reaches "
        f"{lower:.3g}",
        fix=f"Set the learning rate to {best:.1g} ({test.reason if best == test.suggested else 'a tenth of yours'}).",
        numbers={"lr": test.current, "suggested": best, "start": start, "end": end, "end_at_smaller": lower},
        series=(Series("loss while the rate rises", tuple(math.log10(r) for r in test.rates), test.losses),),
        first_step=1,
        strength=test.current / best,
    )


def _risen(seen: Seen, found: Climb) -> Evidence:
    steps = [s for s in seen.all(Step) if s.lr is not None]
    return Evidence(
        location=next((line for kind in SCHEDULES if (line := place_of(seen, kind)) is not None), None),
        summary=f"the loss was down to {found.low:.3g} at step {found.low_step:,}, at a rate of {found.low_rate:.2g}; the rate "
        f"has been rising ever since, to {found.last_rate:.2g}, and the loss with it, to {found.late:.3g}",
        fix="Cap the schedule where its warm-up ends (such as min(1.0, (step + 1) / warmup_steps)); "
        f"{found.low_rate:.1g} was still good.",
        numbers={"lr": found.last_rate, "good": found.low_rate, "lowest": found.low, "late": found.late, "step": found.low_step},
        series=(Series("learning rate", tuple(float(s.step) for s in steps), tuple(float(s.lr or 0) for s in steps)),),
        # The rate rose from the start; what it brought about began later.
        first_step=steps[0].step,
        last_step=steps[-1].step,
        strength=found.last_rate / found.low_rate,
    )


def _in_training(seen: Seen) -> Evidence | NotExamined:
    """Without a trial only one course tells by itself: weights and loss that grow together, step by step, until they overflow."""
    found = runaway(seen)
    if found is None:
        return NotExamined(seen.why_absent(RangeTest) or "the experiment behind it (RangeTest) did not run")
    rate = f" at a rate of {found.rate:g}" if found.rate else ""
    steps = "one step" if found.steps == 1 else f"{found.steps} steps"
    rose = f", and the loss went from {found.start:.3g} to {found.end:.3g}" if found.end > found.start else ""
    return Evidence(
        where=found.path,
        summary=f"{found.path} grew {found.factor:.2g}-fold within {steps}{rate} (size {found.first:.2g} to {found.last:.2g})"
        f"{rose}, until step {found.step} overflowed: the steps are too long, and the operation that overflowed is not to blame",
        fix=f"Lower the learning rate: try {min(found.rate / 100, STARTING):.1g} instead of {found.rate:g}."
        if found.rate
        else None,
        numbers={"lr": found.rate, "factor": found.factor, "start": found.start, "end": found.end, "step": found.step},
        first_step=found.step - found.steps,
        last_step=found.step,
        strength=math.log10(found.factor),
    )


def _warms_up(seen: Seen, rate: float) -> bool:
    return next((s.lr for s in seen.all(Step) if s.lr is not None), rate) < rate / 2


def _why_not_said(seen: Seen, test: RangeTest, start: float) -> str | None:
    overfit = seen.maybe(Overfit)
    if overfit is None:
        return seen.why_absent(Overfit) or "whether the loss falls while training works could not be tried"
    if not overfit.plain:
        return "this loss need not fall while training works"
    if test.run_steps < LEAST_STEPS:
        return f"{test.run_steps} steps at this rate are too few to tell"
    # The short training takes more steps at the same rate: a loss that rose at first may have come down by then.
    later = tuple(s.loss for s in seen.all(Step) if s.loss is not None)
    if _comes_down(max(test.course, later, key=len), start, test.noise):
        return "the loss rose at first but came down later"
    return None


def _comes_down(course: tuple[float, ...], start: float, noise: float) -> bool:
    """Does the last quarter lie below the start, or near it and on its way down?"""
    quarter = len(course) // 4
    if quarter == 0:
        return False
    before, after = float(np.mean(course[-2 * quarter : -quarter])), float(np.mean(course[-quarter:]))
    margin = max(NOISES * noise / math.sqrt(quarter), CLEAR_FALL * abs(start))
    return after < start - margin or (after < NEAR * start and before - after > margin)
