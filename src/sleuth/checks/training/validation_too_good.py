"""Validation is far better than training, by more than dropout and augmentation can explain."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture, CallKind, Evaluation, LossCall, Predictions, Recurrence, Split, Step
from sleuth.core.reading.curve import Curve, guessing, loss_curve, noise, too_few, validation_curve
from sleuth.core.stage import Confidence, Severity, Stage

LEAST_VALIDATIONS = 4
# Steps about a validation that tell the training loss at that very time: a mean over the epoch is of an older model.
AROUND = 20
# Of the training loss: auxiliary heads and penalties make up to six of one.
CONSTANT_SHARE = 1 / 8
# By this factor the share stays the same while the loss itself falls: then the two are averaged differently.
STEADY = 1.5
FALLEN = 1.5
# Of what guessing costs: so early no dropout, no smoothing and no augmentation has made a difference yet.
EARLY = 0.7
EARLY_SHARE = 0.4
# Of the training loss, without dropout: strong augmentation alone makes eight of one.
FAR = 1 / 16
# Of the training loss, where the model is shown the same again and answers without chance: nothing makes training look worse.
PLAIN_SHARE = 0.5
# Of what guessing costs: below it a few hard samples are all of the loss, and validation may have none of them.
ALL_BUT_ZERO = 0.1
# Standard errors: a small validation set may be easier by luck.
BEYOND_NOISE = 4.0
# Of the rows of the last looks: the same as at earlier ones. A few flips and shifts would leave less.
RECURRING = 0.5
# Of the training's samples: their classes are missing in validation.
MISSING = 0.5
# By so much of the samples the classes' shares may differ; beyond it training is balanced on purpose, and harder.
SAME_MIX = 0.2
OTHER_ROWS = (
    "Draw the validation rows at random from where the training rows come from (train_test_split(…, stratify=y)), look for "
    "rows that are in both, and hold the labels of both against each other: those of one may be worse."
)


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
    found = _reason(seen, values, train, curve, (constant_share, early_share, far))
    if found is None:
        return
    what, confidence, fix = found
    yield Evidence(
        summary=f"validation is {values[-1]:.2g} where the training loss of the same time is {train[-1]:.2g}; {what}",
        numbers={"validation": float(values[-1]), "training": float(train[-1]), "share": float(np.median(shares))},
        confidence=confidence,
        fix=fix,
        series=(
            Series("loss", tuple(steps.astype(float).tolist()), tuple(train.tolist())),
            Series("validation loss", tuple(steps.astype(float).tolist()), tuple(values.tolist())),
        ),
        first_step=int(steps[0]),
        last_step=int(steps[-1]),
        strength=1 / max(float(np.median(shares)), 1e-6),
    )


def _reason(
    seen: Seen, values: np.ndarray, train: np.ndarray, curve: Curve, limits: tuple[float, float, float]
) -> tuple[str, Confidence, str | None] | None:
    """Why that is too good, how sure it is, and what to do where that is known better."""
    shares = values / train
    constant_share, early_share, far = limits
    if _constant(shares, train, constant_share):
        what = f"at every validation it is 1/{1 / np.median(shares):.0f} of it: the two are averaged differently"
        return what, Confidence.LIKELY, None
    if _from_the_start(seen, shares, train, early_share):
        what = "from the first one on, when nothing was learned yet that dropout or augmentation could hide"
        return what, Confidence.LIKELY, None
    if _without_reason(seen) and shares[len(shares) // 2 :].max() < far:
        what = "there is no dropout, and augmentation alone does not make such a difference"
        return what, Confidence.POSSIBLE, None
    if _is_plain(seen) and _lies_below(seen, values, train, curve) and (mix := _mix(seen)) is not None:
        what = f"the model is shown the same samples again and draws no random numbers: nothing makes training look worse{mix}"
        return what, Confidence.LIKELY, OTHER_ROWS
    return None


def _at(curve: Curve, step: int) -> float:
    """Mean or middle, whichever is less: a few bad batches must not make training look worse than it is."""
    losses = curve.losses[np.argsort(np.abs(curve.steps - step), kind="stable")[:AROUND]]
    return float(min(losses.mean(), np.median(losses)))


def _constant(shares: np.ndarray, train: np.ndarray, share: float) -> bool:
    steady = shares.min() > 0 and np.quantile(shares, 0.9) < STEADY**2 * np.quantile(shares, 0.1)
    return bool(np.median(shares) < share and steady and train.max() > FALLEN * train.min())


def _from_the_start(seen: Seen, shares: np.ndarray, train: np.ndarray, share: float) -> bool:
    guess = guessing(seen)
    early = shares[train > EARLY * guess] if guess is not None else shares[:0]
    return len(early) > 0 and bool(early.max() < share and shares.max() < 1)


def _without_reason(seen: Seen) -> bool:
    architecture = seen.maybe(Architecture)
    dropout = [layer for layer in architecture.layers if layer.family == "dropout"] if architecture is not None else []
    acts = any(layer.settings.get("p", 1.0) > 0 for layer in dropout)
    return architecture is not None and not acts and _has_plain_loss(seen) and _is_classified(seen)


def _is_classified(seen: Seen) -> bool:
    return all(call.family == "cross-entropy" for call in seen.all(LossCall))


def _has_plain_loss(seen: Seen) -> bool:
    """One call of a loss whose guessing is known, of nothing but the output and the truth."""
    calls = seen.all(LossCall)
    return guessing(seen) is not None and not any(c.options.get("label_smoothing") or c.argument("weight") for c in calls)


def _is_plain(seen: Seen) -> bool:
    """Neither dropout nor augmentation nor noise, as far as the calls of the model tell; nor normalisation by small batches."""
    looks = [r for r in seen.all(Recurrence) if r.trained]
    late = looks[-max(len(looks) // 4, 2) :]
    again = sum(r.again for r in late) > RECURRING * sum(r.rows for r in late)
    chance = any(r.drew is not False for r in looks)
    architecture = seen.maybe(Architecture)
    # With several passes a step the loss that is heard may be that of other weights, or of a part.
    single = all(s.counts.get(CallKind.BACKWARD, 1) == 1 for s in seen.all(Step))
    return (
        again
        and not chance
        and single
        and architecture is not None
        and not architecture.has("batchnorm")
        and _has_plain_loss(seen)
    )


def _lies_below(seen: Seen, values: np.ndarray, train: np.ndarray, curve: Curve) -> bool:
    """Since the middle, at every validation, by more than chance makes of so many samples."""
    values, train = values[len(values) // 2 :], train[len(train) // 2 :]
    sizes = {p.split: p.samples for p in seen.all(Predictions)}
    # Where the samples were not counted, validation is taken to be no larger than a batch.
    batches = max(sizes[Split.VALIDATION] / sizes[Split.TRAIN], 1.0) if len(sizes) == 2 else 1.0
    error = noise(curve.losses) * math.sqrt(1 / AROUND + 1 / batches)
    far = (values < PLAIN_SHARE * train) & (train - values > BEYOND_NOISE * error)
    return bool(far.all() and train.min() > ALL_BUT_ZERO * (guessing(seen) or math.inf))


def _mix(seen: Seen) -> str | None:
    """What the classes of both sides add to it, in words; None: they come in other shares, and that explains it."""
    train, validation = (_classes(seen, split) for split in (Split.TRAIN, Split.VALIDATION))
    if not train or not validation:
        return ""
    missing = sum(share for label, share in train.items() if label not in validation)
    if missing > MISSING:
        return f"; validation holds {len(validation)} of the training's {len(train)} classes"
    apart = sum(abs(train.get(label, 0.0) - validation.get(label, 0.0)) for label in train.keys() | validation.keys()) / 2
    return "" if apart < SAME_MIX else None


def _classes(seen: Seen, split: Split) -> dict[int, float]:
    total: Counter[int] = Counter()
    for found in seen.all(Predictions):
        if found.split is split:
            total.update(found.targets)
    return {label: count / total.total() for label, count in total.items()}
