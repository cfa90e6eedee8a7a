"""Two passes over validation bring different samples."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import SecondPass

# Accuracy can move by this much from pass to pass without any training: as much as people choose models by.
SHARE = 0.005


@check(
    code="D116",
    stage=Stage.DATA,
    severity=Severity.WARNING,
    confidence=Confidence.CERTAIN,
    reads=(SecondPass,),
    explains=("train-val-shift", "overfitting", "validation-too-good", "metric-misread"),
    title="Two passes over validation differ",
    why="""Validation compares the model with itself over time. When its samples are augmented at random, drawn with replacement
    or cut off after shuffling, the measured loss moves by itself: a lucky draw looks like progress, and early stopping and the
    choice of the best checkpoint follow the noise.""",
    fix="""Give validation a data set of its own without random transforms, and a loader without sampler:
    DataLoader(validation, batch_size=…, shuffle=False, drop_last=False).""",
    decided_by="two passes over the validation data",
    symptoms=(
        "validation loss differs every time",
        "different validation results with the same weights",
        "augmentation in the validation set",
        "val accuracy jumps around",
    ),
)
def validation_not_deterministic(seen: Seen, *, share: float = SHARE) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(SecondPass)
    changed = trial.compared > 0 and trial.changed / trial.compared >= share
    lost = trial.passes is not None and trial.lost / max(*trial.passes, 1) >= share
    if (changed or lost) and trial.by_design is not None:
        yield NotExamined(f"two passes differ, but {trial.by_design}")
    elif changed:
        yield _changed(trial, share)
    elif lost:
        yield _lost(trial, share)


def _changed(trial: SecondPass, share: float) -> Evidence:
    part = f" (of {trial.total} in the data set)" if trial.total not in (None, trial.compared) else ""
    targets = f", and {trial.targets_changed} targets with them" if trial.targets_changed else ""
    return Evidence(
        where=f"validation sample {trial.example}",
        summary=f"{trial.changed} of {trial.compared} validation samples{part} come out otherwise when they are read a second "
        f"time{targets}: something random happens to them",
        numbers=_numbers(trial),
        fix="""Take the random transforms out of validation: give it a data set of its own, without augmentation, noise or random
        crops. Where random_split made it, split the indices instead, and wrap them in two data sets.""".replace(
            "\n        ", " "
        ),
        strength=trial.changed / trial.compared / share,
    )


def _lost(trial: SecondPass, share: float) -> Evidence:
    first, second = trial.passes or (0, 0)
    cause = "they are changed at random, or another part of the set is drawn each time"
    fix = None
    if trial.compared:
        cause = "the samples themselves stay as they are, so another part of the set is drawn each time"
        fix = (
            "Read all of validation at each pass: DataLoader(validation, batch_size=…, shuffle=False, drop_last=False), "
            "without a sampler that draws at random."
        )
    return Evidence(
        where="validation",
        summary=f"{trial.lost} of {max(first, second)} validation samples of one pass do not come in another: {cause}",
        numbers=_numbers(trial),
        fix=fix,
        strength=trial.lost / max(first, second, 1) / share,
    )


def _numbers(trial: SecondPass) -> dict[str, int | bool | None]:
    first, second = trial.passes or (None, None)
    return {
        "compared": trial.compared,
        "changed": trial.changed,
        "targets_changed": trial.targets_changed,
        "first_pass": first,
        "second_pass": second,
        "lost": trial.lost,
        "total": trial.total,
        "complete": trial.complete,
    }
