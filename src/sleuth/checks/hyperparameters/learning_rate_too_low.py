"""At this learning rate the loss hardly moves, at a far higher one it falls."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Ending
from sleuth.core.reading.curve import level, loss_curve
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Overfit, RangeTest

# Rates within two and a half decades of the best fast start are a matter of taste, of the schedule and of how long one
# trains; fine-tuning is slow on purpose.
FACTOR = 300.0
# Of what the better rate gains in the same steps: fifty times as many steps for the same progress.
LITTLE = 0.02
# Of the start: what the better rate has to gain to be worth speaking of.
CLEAR_FALL = 0.2
# In standard errors of that gain.
NOISES = 3.0
# Of rates that gain nearly the same, the smaller is the safer.
NEARLY = 0.8
# Of a training of the user's that is over and has stood still all along: a rate so many times higher that learns what this one
# cannot even begin to learn is no matter of taste.
FACTOR_AT_A_STAND = 30.0
# Steps of that training, and what its loss may have fallen by, as a share of its start, in standard errors to spare.
LEAST_STEPS = 150
STILL = 0.05
SURE = 3.0
# Of one batch: what the user's rate leaves of the loss, and what the higher one does.
UNLEARNED = 0.9
LEARNED = 0.1


@check(
    code="H502",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    reads=(RangeTest, Overfit),
    explains=(
        "loss-not-decreasing",
        "cannot-overfit-one-batch",
        "step-changes-nothing",
        "weights-do-not-change",
        "update-too-small",
        "underfitting",
        "stopped-too-early",
        "predicts-one-class",
        "capacity-too-small",
    ),
    title="The learning rate is too low",
    why="""The loss falls by about the rate times the square of the gradient a step. A rate that is hundreds of times too small
    needs hundreds of times the steps, and looks as if nothing was learned at all.""",
    fix="Raise the learning rate.",
    decided_by="short trainings from the same start at your rate and at larger ones",
    symptoms=(
        "training is slow",
        "loss decreases very slowly",
        "loss does not decrease",
        "takes forever to converge",
        "weights do not change much",
        "accuracy does not improve",
    ),
)
def learning_rate_too_low(
    seen: Seen, *, factor: float = FACTOR, little: float = LITTLE, clear_fall: float = CLEAR_FALL
) -> Iterator[Evidence | NotExamined]:
    test = seen.one(RangeTest)
    if not test.current or not test.runs:
        yield NotExamined("there is no learning rate above zero")
        return
    at_a_stand = _at_a_stand(seen, test.current)
    if at_a_stand is not None:
        yield at_a_stand
        return
    start, end = next((s, e) for rate, s, e in test.runs if rate == test.current)
    better = [(s - e, rate, e) for rate, s, e in test.runs if rate >= factor * test.current and e is not None]
    if end is None or not better:
        return
    most = max(better)[0]
    if most <= 0:  # no larger rate gains anything
        return
    gain, rate, lower = min((run for run in better if run[0] >= NEARLY * most), key=lambda run: run[1])
    if gain < max(clear_fall * abs(start), NOISES * _error(test, rate)) or start - end > little * gain:
        return
    if not seen.one(Overfit).plain:
        yield NotExamined("this loss need not fall while training works")
        return
    yield Evidence(
        summary=f"in {test.run_steps} steps at {test.current:g} the loss goes from {start:.4g} to {end:.4g}; from the same start "
        f"at {rate:.1g} it reaches {lower:.3g}",
        fix=f"Raise the learning rate to {rate:.1g} ({test.reason if rate == test.suggested else 'the best of those tried'}).",
        numbers={"lr": test.current, "suggested": rate, "start": start, "end": end, "end_at_suggested": lower},
        series=(Series("loss while the rate rises", tuple(math.log10(r) for r in test.rates), test.losses),),
        first_step=1,
        strength=rate / test.current / factor,
    )


def _at_a_stand(seen: Seen, rate: float) -> Evidence | None:
    """The user's own training, from its first step to its last, went nowhere, and neither does one batch at its rate."""
    trial, curve = seen.one(Overfit), loss_curve(seen)
    if isinstance(curve, str) or not seen.all(Ending) or len(curve) < LEAST_STEPS or not trial.plain or not trial.floor_known:
        return None
    third = len(curve) // 3
    early, late = level(curve.losses[:third]), level(curve.losses[-third:])
    scale = early.mean - trial.floor
    if early.mean - late.mean + SURE * math.hypot(early.error, late.error) >= STILL * scale:
        return None
    tuned = trial.tuned_lr
    if not trial.losses or not trial.tuned_losses or tuned is None or tuned < FACTOR_AT_A_STAND * rate:
        return None
    if trial.remaining(trial.losses) < UNLEARNED or trial.remaining(trial.tuned_losses) > LEARNED:
        return None
    return Evidence(
        summary=f"in {len(curve):,} steps at {rate:g} the loss goes from {early.mean:.4g} to {late.mean:.4g}; one batch alone, "
        f"which it hardly begins to learn in {len(trial.losses)} steps, is learned at {tuned:.1g}",
        fix=f"Raise the learning rate, to {tuned:.1g} at most.",
        numbers={"lr": rate, "suggested": tuned, "start": early.mean, "end": late.mean},
        first_step=1,
        strength=tuned / rate / FACTOR_AT_A_STAND,
    )


def _error(test: RangeTest, rate: float) -> float:
    """The standard error of what a rate gained; where that is not known, from the differences between batches."""
    errors = dict(zip((r for r, _, _ in test.runs), test.gain_errors, strict=False))
    known = errors.get(rate)
    return known if known is not None else test.noise / 2
