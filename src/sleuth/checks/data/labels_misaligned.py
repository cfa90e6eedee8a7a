"""Labels do not belong to their inputs."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.trial import Alignment, Late, Moved

# The error rate of the permutation test: at or below it the inputs tell something, and the labels belong.
LEVEL = 0.01
# Between the two the samples hint at a weak link: a hard but honest task looks like this, so nothing is said.
NOTHING = 0.1
# Four classes and more are as a rule somebody's annotation of the input, and simple learners find a good part of them. A
# link of this strength (28 of 100 labels told, the others guessed) would have been seen.
SEEN_ANNOTATION = 0.08
# Two or three classes and real numbers are often outcomes, which honest tasks hardly predict: 54 % right of two classes
# is a strength of 0.0064. To speak of an error, weaker links than that must be ruled out.
SEEN_OUTCOME = 0.005
ANNOTATED_CLASSES = 4
# Inputs whose values each vary for themselves (random bits, parity, sums modulo p) hide every link from simple learners.
STRUCTURED = 0.7
# Rows that tell about the next row are a time series, and forecasts are honest however little can be foretold.
SEQUENCE = 0.3
# Validation that shows a link this many times stronger than training could hide is of another making than training.
CONTRAST = 1.5
CONTRAST_LEVEL = 0.005
# Validation is smaller, so that learners find less in it than in training; a forecast would leave it with nothing.
IN_ORDER = 0.25
# Chance of one false shift in ten thousand data sets, over all the orders that are tried.
MOVED_LEVEL = 1e-4
# What a shift brings back must be plain, and must not be what neighbouring rows tell about each other anyway.
MOVED_SKILL = 0.1
# Half of the target told by the inputs of other rows, against odds of a million: that is seen, not inferred.
PLAIN_SKILL = 0.5
PLAIN_LEVEL = 1e-6
SERIAL = 0.5
# One order is the right one and all others are wrong. Where another does nearly as well, rows repeat in time: each Monday
# resembles the last. Sets whose classes come round in turn (the digits) stay at a third.
RUNNER_UP = 0.6
# The next token or value of a series stands as it is in the row that follows.
CONTAINED = 0.95


@check(
    code="D111",
    stage=Stage.DATA,
    severity=Severity.ERROR,
    reads=(Alignment,),
    explains=(
        "loss-not-decreasing",
        "loss-oscillates",
        "underfitting",
        "overfitting",
        "predicts-one-class",
        "learning-rate-too-low",
        "learning-rate-too-high",
        "capacity-too-small",
        "capacity-too-large",
        "conflicting-labels",
    ),
    title="Labels do not belong to their inputs",
    why="""When inputs and labels are put in different orders (only one of them shuffled or sorted, a header counted as a
    row), every label is somebody else's. A batch can still be learned by heart, but nothing holds for new samples.""",
    fix="""Print ten inputs beside their labels and look. Then shuffle, sort and split both with the same indices:
    order = np.random.permutation(len(x)); x, y = x[order], y[order].""",
    decided_by="how well simple learners predict the labels, against shuffled ones",
    symptoms=(
        "accuracy stays at chance level",
        "loss does not decrease",
        "validation accuracy is random while training memorises",
        "labels do not match the images",
        "shuffled inputs but not the labels",
        "accuracy does not improve",
        "loss stuck at 2.303",
    ),
)
def labels_misaligned(
    seen: Seen, *, seen_annotation: float = SEEN_ANNOTATION, seen_outcome: float = SEEN_OUTCOME
) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Alignment)
    moved = trial.moved
    if moved is not None and _restores(trial, moved):
        yield _moved(trial, moved)
        return
    if trial.p_value <= LEVEL or (trial.model_p_value is not None and trial.model_p_value <= LEVEL):
        if trial.late is not None and _has_come_off(trial.late):
            yield _late(trial, trial.late)
        return
    detectable = 1.0 if trial.detectable is None else trial.detectable
    if _validation_knows(trial, detectable):
        yield _contrast(trial, detectable)
    elif trial.p_value >= NOTHING and _can_speak(trial) and _rules_out(trial, detectable, seen_annotation, seen_outcome):
        yield _nothing(trial, detectable)
    else:
        yield NotExamined(_doubt(trial, detectable))


def _restores(trial: Alignment, moved: Moved) -> bool:
    """A shift brings information back, and of a kind that a series in time does not give by itself."""
    if moved.p_value > MOVED_LEVEL or moved.skill < MOVED_SKILL:
        return False
    if moved.serial > SERIAL * moved.skill or _is_repeated(moved) or _is_forecast(trial):
        return False
    return trial.p_value > LEVEL or trial.skill <= moved.skill / 2


def _moved(trial: Alignment, moved: Moved) -> Evidence:
    # A forecast has its target in a later row by design: moving targets down finds what has happened already.
    later = moved.rows is not None and moved.rows > 0
    forecast = later and trial.classes < ANNOTATED_CLASSES and not _validation_is_in_order(trial, moved)
    how = "are read in reverse order" if moved.rows is None else f"are moved by {moved.rows:+d} row{'s' * (abs(moved.rows) > 1)}"
    cure = "y = y[::-1].copy()" if moved.rows is None else f"y = np.roll(y, {moved.rows})"
    plain = moved.skill >= PLAIN_SKILL and moved.p_value <= PLAIN_LEVEL
    doubt = " If the target is meant to lie in the future, this is a forecast and all is well." if forecast else ""
    return Evidence(
        summary=(
            f"the inputs tell {_amount(trial.skill)} of their own labels, but {_amount(moved.skill)} when the labels {how} "
            f"(p < {max(moved.p_value, 1e-9):.0e} for all {trial.orders_tried} orders that were tried).{doubt}"
        ),
        where="target",
        numbers={
            **_numbers(trial),
            "rows": moved.rows,
            "moved_skill": moved.skill,
            "moved_p_value": moved.p_value,
            "orders_tried": trial.orders_tried,
        },
        severity=Severity.HINT if forecast else Severity.ERROR,
        confidence=Confidence.POSSIBLE if forecast else Confidence.CERTAIN if plain else Confidence.LIKELY,
        fix=f"Move the targets back: {cure}; then look for the header, window or loop that is off.",
        strength=moved.skill / MOVED_SKILL,
    )


def _validation_is_in_order(trial: Alignment, moved: Moved) -> bool:
    """Validation shows in its own order what training shows only in another: then no forecast is meant."""
    if trial.validation_p_value is None or trial.validation_skill is None:
        return False
    return trial.validation_p_value <= CONTRAST_LEVEL and trial.validation_skill >= IN_ORDER * moved.skill


def _validation_knows(trial: Alignment, detectable: float) -> bool:
    if trial.validation_p_value is None or trial.validation_skill is None:
        return False
    return trial.validation_p_value <= CONTRAST_LEVEL and trial.validation_skill >= CONTRAST * detectable


def _contrast(trial: Alignment, detectable: float) -> Evidence:
    return Evidence(
        summary=(
            f"the inputs tell {_amount(trial.validation_skill or 0)} of the labels in validation and nothing in training "
            f"(p = {trial.p_value:.2f}), where {trial.samples} samples would have shown {_amount(detectable)}"
        ),
        where="training targets",
        numbers=_numbers(trial),
        strength=(trial.validation_skill or 0) / detectable,
    )


def _has_come_off(late: Late) -> bool:
    """What came last tells next to nothing, where as many samples of the beginning and of validation tell it plainly."""
    plain = min(late.early_skill, late.validation_skill)
    sure = max(late.early_p_value, late.validation_p_value) <= MOVED_LEVEL
    return sure and plain >= 2 * MOVED_SKILL and late.skill <= IN_ORDER * plain


def _late(trial: Alignment, late: Late) -> Evidence:
    return Evidence(
        summary=(
            f"from step {late.since} on the inputs tell {_amount(late.skill)} of their labels ({late.samples} samples); as many "
            f"of the beginning told {_amount(late.early_skill)}, of validation {_amount(late.validation_skill)}"
        ),
        where="training targets",
        numbers={**_numbers(trial), "since": late.since, "late_skill": late.skill, "early_skill": late.early_skill},
        first_step=late.since,
        fix="Look at what the source does once it wraps around, is refilled or read on: put inputs and labels in by one index.",
        strength=min(late.early_skill, late.validation_skill) / MOVED_SKILL,
    )


def _can_speak(trial: Alignment) -> bool:
    """Inputs in which an honest target would show: structured, and not a series in time."""
    return trial.freedom is not None and trial.freedom <= STRUCTURED and not _is_sequence(trial)


def _is_sequence(trial: Alignment) -> bool:
    if trial.moved is not None and _is_repeated(trial.moved):
        return True
    return _is_forecast(trial) or (trial.serial is not None and trial.serial > SEQUENCE)


def _is_repeated(moved: Moved) -> bool:
    """Several orders bring the same back."""
    return moved.p_value <= MOVED_LEVEL and moved.runner_up > RUNNER_UP * moved.skill


def _is_forecast(trial: Alignment) -> bool:
    """Each row holds the target of a row before it."""
    moved = trial.moved
    return moved is not None and moved.rows is not None and moved.rows > 0 and moved.contained > CONTAINED


def _rules_out(trial: Alignment, detectable: float, annotation: float, outcome: float) -> bool:
    limit = annotation if trial.classes >= ANNOTATED_CLASSES else outcome
    # Without a try of the model itself nobody has looked for what only a network finds.
    return detectable <= limit and trial.model_p_value is not None


def _nothing(trial: Alignment, detectable: float) -> Evidence:
    return Evidence(
        summary=(
            "the inputs tell nothing about the labels: linear, kernel and neighbour learners and the model itself after a short "
            f"training do no better than with shuffled labels (p = {trial.p_value:.2f}), though {trial.samples} samples would "
            f"have shown {_amount(detectable)}"
        ),
        where="target",
        numbers=_numbers(trial),
        strength=SEEN_ANNOTATION / detectable,
    )


def _doubt(trial: Alignment, detectable: float) -> str:
    if trial.p_value < NOTHING:
        return (
            f"cannot tell from {trial.samples} samples: they hint at a weak link of inputs and labels (p = {trial.p_value:.2f})"
        )
    if _is_sequence(trial):
        return f"cannot tell from {trial.samples} samples: nothing shows, but rows follow each other in time: a forecast is hard"
    if not _can_speak(trial):
        return (
            f"cannot tell from {trial.samples} samples: nothing shows, but inputs whose values vary independently "
            "hide most links from simple learners"
        )
    return (
        f"cannot tell from {trial.samples} samples: nothing shows (p = {trial.p_value:.2f}), "
        f"but a link below R² = {detectable:.2g} would not have shown; look at ten inputs beside their labels"
    )


def _amount(skill: float) -> str:
    return f"R² = {max(skill, 0):.2f}" if skill >= 0.095 else f"R² = {max(skill, 0):.3f}"


def _numbers(trial: Alignment) -> dict[str, float | int | None]:
    return {
        "samples": trial.samples,
        "classes": trial.classes,
        "skill": trial.skill,
        "p_value": trial.p_value,
        "detectable": trial.detectable,
        "model_skill": trial.model_skill,
        "model_p_value": trial.model_p_value,
        "validation_skill": trial.validation_skill,
        "validation_p_value": trial.validation_p_value,
    }
