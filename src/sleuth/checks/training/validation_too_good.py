"""Validation is far better than training, by more than dropout and augmentation can explain."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.curve import Curve, guessing, loss_curve, too_few, validation_curve
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, Evaluation, LossCall, Step
from sleuth.core.stage import Confidence, Severity, Stage

LEAST_VALIDATIONS = 4
# Steps about a validation that tell the training loss at that very time: a mean over the epoch is of an older model.
AROUND = 20
# Of the training loss: auxiliary heads and penalties make up to six of one.
CONSTANT_SHARE = 1 / 8
# By this factor the share stays the same while the loss itself falls: then the two are averaged differently.
STEADY = 1.5
FALLEN = 1.5
# Of the start: so early no dropout, no smoothing and no augmentation has made a difference yet.
EARLY = 0.7
EARLY_SHARE = 0.4
# Of the training loss, without dropout: strong augmentation alone makes eight of one.
FAR = 1 / 16


@check(
    code="T427",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, Evaluation),
    title="Validation is far better than training",
    why="""New samples are at best as easy as those that were trained on. Dropout and augmentation make training look
    somewhat worse; a gap beyond that means that the two losses are not computed alike, or that validation sees what it
    should predict.""",
    fix="""Compute both losses by the same code: average over the number of batches when each is a mean already, over the
    number of samples when each is a sum; then look for the target among the validation inputs.""",
    symptoms=(
        "validation loss is lower than training loss",
        "validation accuracy is higher than training accuracy",
        "validation too good to be true",
        "val loss much smaller than train loss",
        "test accuracy suspiciously high",
    ),
    decided_by="validation against the training loss of the same moment: how far below, since when, and how steadily",
)
def validation_too_good(
    seen: Seen, *, constant_share: float = CONSTANT_SHARE, early_share: float = EARLY_SHARE, far: float = FAR
) -> Iterator[Evidence | NotExamined]:
    steps, values = validation_curve(seen)
    if (reason := too_few(values, LEAST_VALIDATIONS)) is not None:
        yield NotExamined(reason)
        return
    curve = loss_curve(seen)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    train = np.array([_at(curve, int(step)) for step in steps])
    if train.min() <= 0 or values.min() < 0:
        yield NotExamined("a loss below zero cannot be said to be so many times as large as another")
        return
    shares = values / train
    start = float(curve.losses[:3].max())
    if _constant(shares, train, constant_share):
        what = f"at every validation it is 1/{1 / np.median(shares):.0f} of it: the two are averaged differently"
        confidence = Confidence.LIKELY
    elif _from_the_start(seen, shares, train, start, early_share):
        what = "from the first one on, when nothing was learned yet that dropout or augmentation could hide"
        confidence = Confidence.LIKELY
    elif _without_reason(seen) and shares[len(shares) // 2 :].max() < far:
        what = "there is no dropout, and augmentation alone does not make such a difference"
        confidence = Confidence.POSSIBLE
    else:
        return
    yield Evidence(
        summary=f"validation is {values[-1]:.2g} where the training loss of the same time is {train[-1]:.2g}; {what}",
        numbers={"validation": float(values[-1]), "training": float(train[-1]), "share": float(np.median(shares))},
        confidence=confidence,
        series=(
            Series("loss", tuple(steps.astype(float).tolist()), tuple(train.tolist())),
            Series("validation loss", tuple(steps.astype(float).tolist()), tuple(values.tolist())),
        ),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=1 / max(float(np.median(shares)), 1e-6),
    )


def _at(curve: Curve, step: int) -> float:
    """Mean or middle, whichever is less: a few bad batches must not make training look worse than it is."""
    losses = curve.losses[np.argsort(np.abs(curve.steps - step), kind="stable")[:AROUND]]
    return float(min(losses.mean(), np.median(losses)))


def _constant(shares: np.ndarray, train: np.ndarray, share: float) -> bool:
    steady = shares.min() > 0 and np.quantile(shares, 0.9) < STEADY**2 * np.quantile(shares, 0.1)
    return bool(np.median(shares) < share and steady and train.max() > FALLEN * train.min())


def _from_the_start(seen: Seen, shares: np.ndarray, train: np.ndarray, start: float, share: float) -> bool:
    early = shares[train > EARLY * start]
    return guessing(seen) is not None and len(early) > 0 and bool(early.max() < share and shares.max() < 1)


def _without_reason(seen: Seen) -> bool:
    architecture = seen.maybe(Architecture)
    calls = seen.all(LossCall)
    plain = guessing(seen) is not None and all(
        c.family == "cross-entropy" and not c.options.get("label_smoothing") for c in calls
    )
    return architecture is not None and not architecture.has("dropout") and plain
