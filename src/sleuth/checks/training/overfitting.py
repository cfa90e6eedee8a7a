"""Validation gets worse while training gets better."""

import math
from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Evaluation, Step
from sleuth.core.reading.curve import Curve, loss_curve, noise, too_few, validation_curve
from sleuth.core.stage import Severity, Stage

# Fewer validations do not tell a trend from its noise.
LEAST_VALIDATIONS = 6
# After the best one; an unlucky validation or two come and go.
LEAST_SINCE = 3
# Of the best validation loss, and of the loss that the training began with: less is not worth stopping for.
RISE = 0.1
RISE_OF_START = 0.02
# Standard errors.
ERRORS = 4.0
# Of the training loss at the best validation: what training must have gained since.
STILL_LEARNED = 0.05
# The steps around a moment that tell the training loss there, as a share of all.
AROUND = 0.05
START_STEPS = 3
# Measures of which more is better: where they improve, a rising loss is only a model that grows surer of itself.
BETTER_WHEN_LARGER = ("accuracy", "acc", "auc", "f1", "iou", "dice", "map", "top1", "r2")


@check(
    code="T425",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, Evaluation),
    title="Validation gets worse while training gets better",
    why="""From here on the model learns its training samples by heart: what it still gains on them does not hold for others
    and costs what it knew about them.""",
    fix="""Keep the weights of the best validation and stop there; for more, add data or augmentation, weight decay or
    dropout, or make the model smaller.""",
    symptoms=(
        "overfitting",
        "validation loss increases while training loss decreases",
        "validation loss goes up",
        "good on train bad on test",
        "when should I stop training",
        "model memorises the training data",
    ),
    decided_by="both curves since the best validation, each against its own noise",
)
def overfitting(seen: Seen, *, rise: float = RISE, errors: float = ERRORS) -> Iterator[Evidence | NotExamined]:
    steps, values = validation_curve(seen)
    if (reason := too_few(values, LEAST_VALIDATIONS)) is not None:
        yield NotExamined(reason)
        return
    curve = loss_curve(seen)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    best = int(values.argmin())
    since = values[best + 1 :]
    if len(since) < LEAST_SINCE or (_scores_improve(seen, int(steps[best])) and not _knows_nothing(curve, since)):
        return
    late = since[len(since) // 2 :]
    low = float(values[max(0, best - 1) : best + 2].mean())
    error = noise(values) * math.sqrt(1 / len(late) + 1 / 3)
    up = float(late.mean()) - low
    worth = max(rise * abs(low), RISE_OF_START * abs(float(curve.losses[0])))
    if up < errors * error or up < worth or late.min() < low or late[-1] < low + up / 2:
        return
    before, now = _trained(curve, int(steps[best])), _trained(curve, int(curve.steps[-1]))
    if before[0] - now[0] < max(STILL_LEARNED * abs(before[0]), 3 * math.hypot(before[1], now[1])):
        return
    at = int(steps[best])
    yield Evidence(
        summary=f"validation was best at step {at:,} ({values[best]:.3g}) and is {values[-1]:.3g} now, while the training loss "
        f"went from {before[0]:.3g} to {now[0]:.3g}",
        fix=f"Stop at step {at:,}: keep the weights of the best validation (early stopping). For more, add data or augmentation, "
        "weight decay or dropout, or make the model smaller.",
        numbers={
            "best": float(values[best]),
            "last": float(values[-1]),
            "stop_at": at,
            "train_then": before[0],
            "train_now": now[0],
        },
        series=(
            Series("validation loss", tuple(steps.astype(float).tolist()), tuple(values.tolist())),
            Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(curve.losses.tolist())),
        ),
        first_step=at,
        last_step=int(curve.steps[-1]),
        strength=up / worth,
    )


def _trained(curve: Curve, step: int) -> tuple[float, float]:
    """The training loss about a step, and its standard error."""
    nearest = np.argsort(np.abs(curve.steps - step), kind="stable")[: max(10, int(AROUND * len(curve)))]
    losses = curve.losses[nearest]
    return float(losses.mean()), float(losses.std()) / math.sqrt(len(losses))


def _knows_nothing(curve: Curve, since: np.ndarray) -> bool:
    """Surer of itself, and so often wrong that an untrained model has the lower loss: what it says is worth less than nothing."""
    return bool(since[len(since) // 2 :].mean() > curve.losses[:START_STEPS].max())


def _scores_improve(seen: Seen, best: int) -> bool:
    for name in BETTER_WHEN_LARGER:
        steps, scores = validation_curve(seen, name)
        then, since = scores[steps <= best], scores[steps > best]
        if len(then) and len(since) > 1 and since[len(since) // 2 :].mean() > then[-1] + noise(scores):
            return True
    return False
