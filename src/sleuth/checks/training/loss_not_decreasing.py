"""The loss does not fall beyond its noise."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Call, Ending, Step
from sleuth.core.reading.curve import Curve, guessing, level, loss_curve
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Ablation, Alignment, InitialLoss, Overfit, RangeTest

# Fewer steps say nothing about a trend.
LEAST_STEPS = 60
# Of a training that may go on: some begin with a plateau of hundreds of steps.
LEAST_SO_FAR = 1000
LEAST_AT_END = 150
# Of the start: a healthy training falls by more in its first hundred steps, most by several times that.
FALL = 0.05
# Standard errors: with this much to spare the fall is below FALL in more than 99 of 100 cases.
SURE = 3.0
# Of what guessing gives: a model that starts lower has learned already, and may be at its floor.
TRAINED = 0.8
# Of what guessing gives, in a training of the user's: lower than this, something was learned.
STILL_GUESSING = 0.9
PARTS = 8
# Small batches hide a small fall in their noise. After so many steps there is a larger one, of the start, that they cannot hide.
LONG = 500
FALL_BY_THEN = 0.2
# Of the largest rate: a schedule that is on its way up has not begun.
WARM = 0.5
# Held-out skill of simple learners (0 guesses, 1 knows) below which a task is too hard to expect a fall at once.
SKILL = 0.1
CHANCE = 0.01


@check(
    code="T403",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    reads=(Step, (Overfit, Ending, Call)),
    explains=("underfitting", "predicts-one-class"),
    title="The loss does not fall",
    why="""Every training that works lowers the loss of an untrained model fast at first. A loss that stays within its noise
    for the whole trial means that the steps do not help, or that they undo each other from batch to batch.""",
    fix="""Check that inputs mean the same in every batch and that similar inputs stay similar inside the model; then look at the
    data and at the first layer: something keeps what is learned on one batch from helping on the next.""",
    decided_by="the trend of the loss against its own noise",
    symptoms=(
        "loss does not decrease",
        "loss stuck",
        "accuracy does not improve",
        "loss stuck at 2.303",
        "model does not learn",
        "loss is flat",
    ),
)
def loss_not_decreasing(seen: Seen, *, fall: float = FALL, sure: float = SURE) -> Iterator[Evidence | NotExamined]:
    trial = seen.maybe(Overfit)
    yield from _live(seen, fall, sure) if trial is None else _tried(seen, trial, fall, sure)


@dataclass(frozen=True)
class Fall:
    """From the first third of the losses to the last."""

    early: float
    late: float
    error: float

    @property
    def size(self) -> float:
        return self.early - self.late


def _tried(seen: Seen, trial: Overfit, fall: float, sure: float) -> Iterator[Evidence | NotExamined]:
    """A short trial of ours."""
    steps = seen.all(Step)
    losses = np.array([s.loss for s in steps if s.loss is not None])
    if len(losses) < len(steps):
        yield NotExamined("the loss became NaN or infinite")
        return
    if len(losses) < LEAST_STEPS:
        yield NotExamined(f"only {len(losses)} steps were seen")
        return
    third = len(losses) // 3
    early, late = losses[:third], losses[-third:]
    error = math.sqrt((early.var(ddof=1) + late.var(ddof=1)) / third)
    fell = Fall(float(early.mean()), float(late.mean()), error)
    scale = fell.early - trial.floor
    if fell.size + sure * error >= fall * scale:
        if fell.size < sure * error:
            yield NotExamined("the loss is too noisy to tell within so few steps")
        return
    if (reason := _why_not_said(seen, trial)) is not None:
        yield NotExamined(reason)
        return
    beside = "while one batch alone " + ("can be learned" if _learned(trial) else "cannot be learned either")
    yield _evidence(fell, np.array([s.step for s in steps]), losses, beside, fall * scale)


def _live(seen: Seen, fall: float, sure: float) -> Iterator[Evidence | NotExamined]:
    """The user's own training."""
    curve, guess = loss_curve(seen), guessing(seen)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    least = LEAST_AT_END if seen.all(Ending) else LEAST_SO_FAR
    if len(curve) < least:
        yield NotExamined(f"only {len(curve)} steps were seen; some trainings begin with a plateau")
        return
    third = len(curve) // 3
    early, late = level(curve.losses[:third]), level(curve.losses[-third:])
    fell = Fall(early.mean, late.mean, math.hypot(early.error, late.error))
    if fell.size >= sure * fell.error:
        return
    if guess is None:
        yield NotExamined("the loss of mere guessing is not known, so it may be at its floor already")
        return
    lowest = min(part.mean() for part in np.array_split(curve.losses, PARTS))
    if lowest < STILL_GUESSING * guess or _warming_up(curve):
        return
    if fell.size + sure * fell.error >= fall * guess and not _flat_for_long(curve, fell, guess, sure):
        yield NotExamined("the loss is too noisy to tell within so few steps")
        return
    yield _evidence(fell, curve.steps, curve.losses, f"where guessing costs {guess:.3g}", fall * guess)


def _flat_for_long(curve: Curve, fell: Fall, guess: float, sure: float) -> bool:
    """Noise or not: no sign of a fall, no room for a real one, and still at the level of guessing."""
    later = level(curve.losses[len(curve) // 3 :])
    flat = fell.size < fell.error and fell.size + sure * fell.error < FALL_BY_THEN * guess
    return len(curve) >= LONG and flat and later.mean - sure * later.error > STILL_GUESSING * guess


def _warming_up(curve: Curve) -> bool:
    rates = curve.rates[np.isfinite(curve.rates)]
    return len(rates) > 0 and bool(np.median(rates) < WARM * rates.max() and rates[-1] > WARM * rates.max())


def _evidence(fell: Fall, steps: np.ndarray, losses: np.ndarray, beside: str, least: float) -> Evidence:
    return Evidence(
        summary=f"over {len(losses)} steps the loss went from {fell.early:.3g} to {fell.late:.3g} "
        f"(means of {len(losses) // 3} steps, ± {fell.error:.1g}), {beside}",
        numbers={"early": fell.early, "late": fell.late, "error": fell.error, "steps": len(losses)},
        series=(Series("loss", tuple(steps.astype(float).tolist()), tuple(losses.tolist())),),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=least / max(fell.size, fell.error, 1e-30),
    )


def _why_not_said(seen: Seen, trial: Overfit) -> str | None:
    """The reason to stay silent about a loss that did not fall; None when there is none."""
    if not trial.plain:
        return "this loss need not fall while training works"
    guess = _guess(seen)
    if guess is None:
        return "the loss of mere guessing is not known, so it may be at its floor already"
    if trial.losses[0] < TRAINED * guess:
        return "the model has learned before: its loss starts below that of guessing"
    test, alignment = seen.maybe(RangeTest), seen.maybe(Alignment)
    if test is None or test.current is None:
        return "other learning rates could not be tried; this one may just be slow"
    if any(end is not None and rate > test.current and start - end > FALL * abs(start) for rate, start, end in test.runs):
        return "the loss falls at a higher learning rate: this one is slow, which learning-rate-too-low judges"
    if _learned(trial) and alignment is not None and (alignment.skill < SKILL or alignment.p_value > CHANCE):
        return "simple learners find as little in these inputs: there may be nothing to learn"
    return None


def _guess(seen: Seen) -> float | None:
    initial, ablation = seen.maybe(InitialLoss), seen.maybe(Ablation)
    if initial is not None:
        return initial.expected
    return ablation.constant_floor if ablation is not None else None


def _learned(trial: Overfit) -> bool:
    if trial.crowd is not None and trial.crowd.gained < FALL + trial.crowd.chance:
        return False
    return min(trial.remaining(losses) for losses in (trial.losses, trial.tuned_losses) if losses) < 0.1
