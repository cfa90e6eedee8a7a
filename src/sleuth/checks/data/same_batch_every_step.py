"""The loop keeps feeding one batch."""

from collections.abc import Iterator
from statistics import median

from sleuth.checks.evidence.loop import place_of
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Evaluation, Split, Step
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Feeding

# Two equal batches may be a slip; from three on the source stands still.
LEAST_BATCHES = 3
# Other samples are answered so many times worse, by the loss: the batch was learned by heart and nothing else.
LEARNED_BY_HEART = 3.0
RECENT = 16


@check(
    code="D114",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    reads=(Feeding,),
    explains=(
        "duplicate-samples",
        "data-not-shuffled",
        "class-imbalance",
        "constant-feature",
        "conflicting-labels",
        "labels-misaligned",
        "train-val-overlap",
        "train-val-shift",
        "target-leak",
        "workers-repeat-augmentation",
        "target-not-scaled",
        "input-ignored",
        "learns-without-input",
        "loss-ignores-target",
        "collapsed-output",
        "predicts-one-class",
        "initial-loss-off",
        "loss-not-decreasing",
        "overfitting",
        "validation-too-good",
        "capacity-too-large",
        "capacity-too-small",
        "batch-size-off",
        "learning-rate-too-low",
        "learning-rate-too-high",
    ),
    title="Every step gets the same batch",
    why="""The model learns one batch by heart and sees nothing else of the data: the loss falls towards zero, and new samples
    are answered by guessing. It happens when next(iter(loader)) stands inside the loop, when an iterator starts over at each
    step, or when a data set does not use the index it is asked for.""",
    fix="""Loop over the loader itself: for x, y in loader: …; and see that __getitem__(self, i) returns sample i.""",
    decided_by="fingerprints of the batches, step by step",
    symptoms=(
        "loss goes to zero at once but accuracy is at chance",
        "next(iter(loader)) in the loop",
        "training uses only one batch",
        "validation worse than training",
    ),
)
def same_batch_every_step(seen: Seen, *, least_batches: int = LEAST_BATCHES) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Feeding)
    if trial.distinct > 1:
        return
    if trial.batches < least_batches:
        # A source that was read to its end has no batch left that could be equal too.
        if not trial.complete:
            yield NotExamined(f"only {trial.batches} batches were seen")
        return
    severity, confidence = _weight(trial) if not trial.by_hand else _weight_by_hand(seen)
    yield Evidence(
        where="train",
        location=place_of(seen, "batch"),
        summary=f"all {trial.batches} batches{_amount(trial)} are equal: {_contents(trial)}{_against(trial)}",
        numbers={
            "batches": trial.batches,
            "distinct": trial.distinct,
            "samples": trial.samples,
            "distinct_samples": trial.distinct_samples,
            "available": trial.available,
            "complete": trial.complete,
        },
        severity=severity,
        confidence=confidence,
        fix=_fix(trial),
        strength=float(trial.batches),
    )


def _weight(trial: Feeding) -> tuple[Severity, Confidence]:
    """One batch fed again and again is right where it is all there is: then only the number of steps is written oddly."""
    if trial.available is not None and trial.available > trial.samples:
        return Severity.ERROR, Confidence.CERTAIN
    if trial.validation_samples is not None and trial.validation_samples > trial.samples:
        return Severity.ERROR, Confidence.LIKELY
    return (Severity.HINT, Confidence.POSSIBLE) if trial.listed else (Severity.ERROR, Confidence.LIKELY)


def _weight_by_hand(seen: Seen) -> tuple[Severity, Confidence]:
    """Whoever makes a batch for each step may have no other samples: only what comes of it tells."""
    evaluated = [e.metrics["loss"] for e in seen.all(Evaluation) if e.split is Split.VALIDATION and "loss" in e.metrics]
    trained = [s.loss for s in seen.all(Step) if s.loss is not None][-RECENT:]
    if not evaluated or not trained or evaluated[-1] < LEARNED_BY_HEART * median(trained) or median(trained) < 0:
        return Severity.HINT, Confidence.POSSIBLE
    return Severity.WARNING, Confidence.LIKELY


def _amount(trial: Feeding) -> str:
    return " of an epoch" if trial.complete else " that were read"


def _contents(trial: Feeding) -> str:
    if trial.samples == 1:
        return "the same single sample"
    if trial.distinct_samples == 1:
        return f"{trial.samples} times the same sample"
    return f"the same {trial.samples} samples with the same targets"


def _against(trial: Feeding) -> str:
    if trial.available is not None and trial.available > trial.samples:
        return f", while the data set counts {trial.available}"
    if trial.validation_samples is not None and trial.validation_samples > trial.samples:
        return f", while validation has {trial.validation_samples}"
    return "; if they are all your data, give them once"


def _fix(trial: Feeding) -> str | None:
    if trial.distinct_samples == 1 and trial.samples > 1:
        return "Use the index in the data set: def __getitem__(self, i): return self.x[i], self.y[i]."
    return None
