"""The loss does not fall beyond its noise."""

import math
from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Step
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Ablation, Alignment, InitialLoss, Overfit, RangeTest

# Fewer steps say nothing about a trend.
LEAST_STEPS = 60
# Of the start: a healthy training falls by more in its first hundred steps, most by several times that.
FALL = 0.05
# Standard errors: with this much to spare the fall is below FALL in more than 99 of 100 cases.
SURE = 3.0
# Of what guessing gives: a model that starts lower has learned already, and may be at its floor.
TRAINED = 0.8
# Held-out skill of simple learners (0 guesses, 1 knows) below which a task is too hard to expect a fall at once.
SKILL = 0.1
CHANCE = 0.01


@check(
    code="T403",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    reads=(Step, Overfit),
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
    steps, trial = seen.all(Step), seen.one(Overfit)
    losses = np.array([s.loss for s in steps if s.loss is not None])
    if len(losses) < len(steps):
        yield NotExamined("the loss became NaN or infinite")
        return
    if len(losses) < LEAST_STEPS:
        yield NotExamined(f"only {len(losses)} steps were seen")
        return
    third = len(losses) // 3
    early, late = losses[:third], losses[-third:]
    fell = float(early.mean() - late.mean())
    error = math.sqrt((early.var(ddof=1) + late.var(ddof=1)) / third)
    scale = float(early.mean()) - trial.floor
    if fell + sure * error >= fall * scale:
        if fell < sure * error:
            yield NotExamined("the loss is too noisy to tell within so few steps")
        return
    if (reason := _why_not_said(seen, trial)) is not None:
        yield NotExamined(reason)
        return
    yield Evidence(
        summary=f"over {len(losses)} steps the loss went from {early.mean():.3g} to {late.mean():.3g} "
        f"(means of {third} steps, ± {error:.1g}), while one batch alone "
        + ("can be learned" if _learned(trial) else "cannot be learned either"),
        numbers={"early": float(early.mean()), "late": float(late.mean()), "error": error, "steps": len(losses)},
        series=(Series("loss", tuple(float(s.step) for s in steps), tuple(losses.tolist())),),
        first_step=1,
        last_step=steps[-1].step,
        strength=fall * scale / max(fell, error),
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
