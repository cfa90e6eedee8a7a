"""The model learns one batch but not the training set, where simple learners do."""

import math
from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Architecture
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import LongTraining, Overfit

# In score, on samples that the model was trained on and the learner was not: closer is a matter of patience and taste.
GAP = 0.15
# The model leaves at least this many times as much unlearned.
TIMES = 2.0
ERRORS = 5.0
# Of the loss of one batch (core.trial.Overfit.remaining): below it, nothing keeps the model from learning.
LEARNED = 0.1
# Parameters for each number in the targets: with more, what is not learned is not for want of parameters.
MODEST = 10.0


@check(
    code="H505",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    reads=(LongTraining, Overfit, Architecture),
    explains=("underfitting", "predicts-one-class"),
    title="The model is too small for the training set",
    why="""A few samples fit into a small model, all of them together do not: it has too few units to tell them apart. Training
    stands still at a loss that other learners fall below on samples they have not even seen.""",
    fix="Give the model more units in its narrowest layers, or another layer.",
    symptoms=(
        "underfitting",
        "training accuracy does not improve any more",
        "training and validation loss both high",
        "loss plateaus too high",
        "training accuracy stops far below 100 %",
        "one batch is learned but the training loss does not fall further",
        "model too small",
    ),
    decided_by="a training until nothing moves, against the held-out answers of simple learners on the same samples",
)
def capacity_too_small(
    seen: Seen, *, modest: float = MODEST, gap: float = GAP, times: float = TIMES
) -> Iterator[Evidence | NotExamined]:
    trial, batch = seen.one(LongTraining), seen.one(Overfit)
    learner = trial.learner_score
    if trial.parameters > modest * trial.targets:
        return
    if trial.why_not is not None:
        yield NotExamined(trial.why_not)
        return
    if learner is None or not trial.later_steps:
        return
    missing = learner - trial.best
    error = math.sqrt(max(learner * (1 - learner), 0.01) / trial.samples)
    if missing < max(gap, ERRORS * error) or 1 - trial.best < times * (1 - learner):
        return
    if (reason := _why_not_said(trial, batch, seen.one(Architecture))) is not None:
        yield NotExamined(reason)
        return
    what = "of the training samples right" if trial.classes else "r² on the training samples"
    model, simple = _number(trial.best, trial.classes), _number(learner, trial.classes)
    yield Evidence(
        summary=f"one batch is learned, but training on all stands still at {model} {what}, at any rate that was tried; "
        f"{trial.learner} gets {simple} on samples that it has not seen. The model has {trial.parameters} trainable parameters",
        numbers={
            "score": trial.best,
            "learner_score": learner,
            "parameters": trial.parameters,
            "samples": trial.samples,
            "steps": trial.later_steps[-1],
        },
        series=(
            Series("score as it is", tuple(map(float, trial.steps)), trial.scores),
            Series(f"score at {trial.rate:.1g}", tuple(map(float, trial.later_steps)), trial.later_scores),
        ),
        strength=missing / gap,
    )


def _why_not_said(trial: LongTraining, batch: Overfit, model: Architecture) -> str | None:
    runs = [losses for losses in (batch.losses, batch.tuned_losses) if losses]
    if not batch.floor_known or min(map(batch.remaining, runs), default=1.0) > LEARNED:
        return "one batch is not learned either, so it is not a matter of size"
    if not trial.flat:
        return f"the training set is not learned after {trial.later_steps[-1]} steps, but the loss still falls"
    frozen = sum(p.size for p in model.parameters if not p.trainable)
    if frozen > trial.parameters:
        return "most of the model is frozen"
    return None


def _number(score: float, classes: int) -> str:
    return f"{score:.0%}" if classes else f"{score:.2f}"
