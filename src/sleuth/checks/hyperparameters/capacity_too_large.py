"""The model learns the training set by heart at once and is worse than a simple learner on validation."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import LongTraining, ParameterStart

# Score on the training samples.
BY_HEART = 0.98
# Between training and validation, in score.
FALLS_SHORT = 0.15
# By which a simple learner is better on validation; and it leaves at most this share of the model's error.
BETTER = 0.1
LESS = 0.7
# One-sided: of a hundred models that are as good as the learner, one gets so much worse answers.
CHANCE = 0.01
FEWEST = 30
# Parameters a sample. With fewer, size alone explains nothing.
HUGE = 50.0
# With so many, learning by heart and failing on others is proof enough; no learner has to do better.
EXTREME = 1000.0
# Standard errors of a share among the validation samples.
ERRORS = 3.0


@check(
    code="H506",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    reads=(LongTraining, ParameterStart),
    explains=("capacity-mismatch", "overfitting"),
    title="The model is too large for the training set",
    why="""With many more parameters than samples there are endless ways to get the training samples right. Training finds one in
    a few steps, noise included, and stops before it has learned what the samples have in common.""",
    fix="Use fewer units or layers, more data or augmentation, or regularise; stop at the best validation score.",
    symptoms=(
        "overfitting",
        "validation worse than training",
        "val loss goes up",
        "training loss near zero, validation loss high",
        "training accuracy is perfect after a few epochs and validation is poor",
        "validation loss rises from the start",
        "memorises the training set",
        "model too big",
    ),
    decided_by="the trained model against a simple learner, sample by sample of validation",
)
def capacity_too_large(
    seen: Seen, *, huge: float = HUGE, falls_short: float = FALLS_SHORT, better: float = BETTER, less: float = LESS
) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(LongTraining)
    if trial.parameters < huge * trial.samples:
        return
    learner = trial.learner_validation
    if learner is None or trial.p_value is None or not trial.validation_scores:
        yield NotExamined(trial.why_not or "not all of the training data was read")
        return
    if trial.validation_samples < FEWEST:
        yield NotExamined(f"{trial.validation_samples} validation samples are too few to tell")
        return
    score, held = trial.scores[-1], trial.validation_scores[-1]
    if score < BY_HEART or score - held < max(falls_short, ERRORS * math.sqrt(0.25 / trial.validation_samples)):
        return
    beaten = learner - held >= better and trial.p_value <= CHANCE and 1 - learner <= less * (1 - held)
    if not beaten and trial.parameters < EXTREME * trial.samples:
        return
    if any(start.trained for start in seen.one(ParameterStart).parameters):
        yield NotExamined("the model is pretrained, so its size is not a matter of these data")
        return
    yield _evidence(trial, score, held, learner)


def _evidence(trial: LongTraining, score: float, held: float, learner: float) -> Evidence:
    what = "right answers" if trial.classes else "r²"
    many = trial.parameters / trial.samples
    return Evidence(
        summary=f"{trial.parameters} trainable parameters for {trial.samples} samples ({many:.0f} each): after "
        f"{trial.steps[-1]} steps {what} {_number(score, trial)} in training and {_number(held, trial)} in validation"
        + (f", where {trial.learner} gets {_number(learner, trial)}" if learner > held else ""),
        numbers={
            "parameters": trial.parameters,
            "samples": trial.samples,
            "train_score": score,
            "validation_score": held,
            "learner_validation_score": learner,
            "p_value": trial.p_value,
        },
        series=(
            Series("training score", tuple(map(float, trial.steps)), trial.scores),
            Series("validation score", tuple(map(float, trial.steps)), trial.validation_scores),
        ),
        strength=(learner - held) / BETTER,
    )


def _number(score: float, trial: LongTraining) -> str:
    return f"{score:.0%}" if trial.classes else f"{score:.2f}"
