"""The loss was still falling fast when the training ended."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Ending, Step
from sleuth.core.reading.curve import Curve, line, loss_curve, validation_curve
from sleuth.core.stage import Severity, Stage

# Fewer steps do not make a curve.
LEAST_STEPS = 40
# Of all that was gained: what as many steps again would bring, if each quarter brings as much less as the last one did.
WORTH_WAITING = 0.15
# Of the loss at the end: a loss near zero may still halve and nothing is won.
WORTH_OF_LOSS = 0.1
# The slope of the last quarter, in standard errors over blocks, so that steps which resemble each other count once.
ERRORS = 4.0
# A schedule that has come down to this share of its largest rate has come to its end.
RUN_OUT = 0.1
# Validation that is so much above its best for the last third has seen enough of this training.
RISEN = 0.02
# No more than this many times as long is ever proposed.
LONGEST = 10.0


@check(
    code="H508",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.HINT,
    reads=(Ending, Step),
    explains=("underfitting",),
    title="Training ended while the loss was still falling fast",
    why="""A loss falls fast at first and slower later. Where it still falls as it did before, the model has not yet learned what
    it could, and whatever is concluded from its score is concluded too early.""",
    fix="Train longer, until the loss has levelled off or validation stops improving.",
    symptoms=(
        "loss was still falling",
        "how many epochs should I train",
        "not trained long enough",
        "training ended too soon",
        "the loss curve is still going down at the end",
        "more epochs would help",
    ),
    decided_by="the slope of the last quarter of the training against its noise, and the fall that it predicts",
)
def stopped_too_early(seen: Seen, *, worth_waiting: float = WORTH_WAITING) -> Iterator[Evidence | NotExamined]:
    curve = loss_curve(seen)
    reason = curve if isinstance(curve, str) else _why_not(seen.all(Ending)[-1], curve)
    if isinstance(curve, str) or reason is not None:
        yield NotExamined(str(reason))
        return
    losses = curve.losses
    quarter = len(losses) // 4
    before, last = line(losses[-2 * quarter : -quarter]), line(losses[-quarter:])
    start = float(losses[: max(1, quarter // 8)].mean())
    gained = start - last.last
    if last.fall < ERRORS * last.error or gained <= 0 or _validation_rises(seen):
        return
    shrinks = min(1.0, max(last.fall / before.fall, 0.0)) if before.fall > 0 else 1.0
    more = sum(last.fall * shrinks**k for k in range(1, 5))
    if losses.min() >= 0:  # a loss that never was below zero will not fall below it
        more = min(more, last.last)
    if more < max(worth_waiting * gained, WORTH_OF_LOSS * abs(last.last)):
        return
    total = int(curve.steps[-1])
    yield Evidence(
        summary=f"in the last quarter of {total} steps the loss fell from {last.first:.3g} to {last.last:.3g} (start: "
        f"{start:.3g}); as many steps again would bring about {more:.2g} more",
        fix=f"Train {_times(last.fall, shrinks, gained)} as long.",
        numbers={
            "steps": total,
            "start": start,
            "end": last.last,
            "fall_of_last_quarter": last.fall,
            "error": last.error,
            "expected_further_fall": more,
        },
        series=(Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(losses.tolist())),),
        first_step=int(curve.steps[-quarter]),
        last_step=total,
        strength=more / (worth_waiting * gained),
    )


def _why_not(end: Ending, curve: Curve) -> str | None:
    if end.how != "completed":
        return f"the training did not run to its end ({end.how})"
    if len(curve) < LEAST_STEPS:
        return f"{len(curve)} steps are too few to see where the loss was going"
    rates = [rate for rate in curve.rates.tolist() if math.isfinite(rate)]
    if rates and rates[-1] < RUN_OUT * max(rates):
        return f"the schedule had brought the learning rate down from {max(rates):g} to {rates[-1]:g}: it ended as planned"
    return None


def _validation_rises(seen: Seen) -> bool:
    found = validation_curve(seen)[1].tolist()
    if len(found) < 3:
        return False
    late = found[-max(1, len(found) // 3) :]
    return min(late) > min(found) + RISEN * abs(min(found))


def _times(fall: float, shrinks: float, gained: float) -> str:
    """Until a quarter brings no more than a hundredth of all that was gained."""
    if shrinks > 0.95 or shrinks <= 0:
        return "several times"
    quarters = math.log(0.01 * gained / fall) / math.log(shrinks)
    return f"about {min(LONGEST, 1 + max(quarters, 1) / 4):.2g} times"
