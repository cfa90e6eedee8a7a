"""The loss was still falling fast when the training ended."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Ending, Evaluation, Split, Step
from sleuth.core.stage import Severity, Stage

# Fewer steps do not make a curve.
LEAST_STEPS = 40
# Of all that was gained: what as many steps again would bring, if each quarter brings as much less as the last one did.
WORTH_WAITING = 0.15
# Of the loss at the end: a loss near zero may still halve and nothing is won.
WORTH_OF_LOSS = 0.1
# The slope of the last quarter, in standard errors over blocks, so that steps which resemble each other count once.
ERRORS = 4.0
BLOCKS = 8
# A schedule that has come down to this share of its largest rate has come to its end.
RUN_OUT = 0.1
# Validation that is so much above its best for the last third has seen enough of this training.
RISEN = 0.02
# No more than this many times as long is ever proposed.
LONGEST = 10.0


@dataclass(frozen=True)
class Tail:
    """The loss in a part of the training, as a line."""

    first: float
    last: float
    error: float  # of the fall from first to last

    @property
    def fall(self) -> float:
        return self.first - self.last


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
    end = seen.all(Ending)[-1]
    steps = _main(seen.all(Step))
    if (reason := _why_not(end, steps)) is not None:
        yield NotExamined(reason)
        return
    losses = np.array([step.loss for step in steps], dtype=np.float64)
    quarter = len(losses) // 4
    before, last = _tail(losses[-2 * quarter : -quarter]), _tail(losses[-quarter:])
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
    total = steps[-1].step
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
        series=(Series("loss", tuple(float(s.step) for s in steps), tuple(losses.tolist())),),
        first_step=steps[-quarter].step,
        last_step=total,
        strength=more / (worth_waiting * gained),
    )


def _main(steps: list[Step]) -> list[Step]:
    """Of several optimisers, the one that steps most."""
    count = Counter(step.optimiser for step in steps)
    return [step for step in steps if step.optimiser == count.most_common(1)[0][0]]


def _why_not(end: Ending, steps: list[Step]) -> str | None:
    if end.how != "completed":
        return f"the training did not run to its end ({end.how})"
    if len(steps) < LEAST_STEPS:
        return f"{len(steps)} steps are too few to see where the loss was going"
    if any(step.loss is None for step in steps):
        return "the loss was not always a finite number"
    rates = [step.lr for step in steps if step.lr is not None]
    if rates and rates[-1] < RUN_OUT * max(rates):
        return f"the schedule had brought the learning rate down from {max(rates):g} to {rates[-1]:g}: it ended as planned"
    return None


def _tail(losses: np.ndarray) -> Tail:
    """A line through the means of a few blocks."""
    means = np.array([block.mean() for block in np.array_split(losses, min(BLOCKS, len(losses)))])
    places = np.linspace(-0.5, 0.5, len(means)) * (1 - 1 / len(means))
    spread = float(np.square(places).sum())
    slope = float(places @ means / spread)
    rest = means - means.mean() - slope * places
    error = math.sqrt(float(np.square(rest).sum()) / (len(means) - 2) / spread)
    middle = float(means.mean())
    return Tail(middle - slope / 2, middle + slope / 2, error)


def _validation_rises(seen: Seen) -> bool:
    found = [e.metrics["loss"] for e in seen.all(Evaluation) if e.split is Split.VALIDATION and "loss" in e.metrics]
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
