"""Trains until the training set is learned or nothing moves any more, beside simple learners on the same samples."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.trial import LongTraining
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.rates import sweep, use_working_rate
from sleuth.probes.learners.baseline import Bar, set_bar

STEPS = 600
LATER_STEPS = 2000
SCORED_EVERY = 50
# Parameters for each number in the targets: with more, what is not learned is not for want of parameters.
MODEST = 10
# Parameters a sample: with so many a model may learn everything by heart.
HUGE = 50
# With so many a sample there is nothing that a simple learner would have to prove first.
EXTREME = 1000
BY_HEART = 0.99
# Of the loss of one batch: where more of it stays, something else than its size keeps the model from learning.
ONE_BATCH_LEARNED = 0.1
# Above chance, where the learner finds less, nobody knows what there is to find.
WORTH_LEARNING = 0.2
# This close to the learner's score the training set counts as learned.
NEAR = 0.12
# The rate of the range test first; where that fails, a safer one.
SAFER = 10.0
# Nothing moves any more when so many scores in a row are hardly better than as many before: by this share of what is missing,
# while the loss fell by less than that share of itself. Ten times as long would not bring it there.
WINDOW = 8
FLAT_SCORE = 0.1
FLAT_LOSS = 0.05
# A loss that falls less than this from one half of two hundred steps to the other goes on with a smaller rate.
STILL = 0.03
PATIENCE = 200
SLOWER = 3.0
# A rate that after a window of scores is so far behind the user's own will not get ahead of it.
HOPELESS = 0.1


@dataclass(frozen=True)
class Course:
    steps: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return max(self.scores, default=-math.inf)


@probe(
    title="Training until nothing moves",
    stage=Stage.HYPERPARAMETERS,
    rank=40,
    emits=(LongTraining,),
    needs=("forward", "loss", "backward"),
    share=0.2,
)
def long_training(lab: Lab) -> Iterator[Observation]:
    parameters = sum(int(np.prod(lab.bench.parameter(path).shape)) for path in lab.bench.paths())
    trial = LongTraining(lab.train.samples, lab.train.samples * _numbers(lab), parameters)
    # Data that were not read to their end are more than were read.
    huge = lab.train.complete and parameters >= HUGE * lab.train.samples
    if not huge and parameters > MODEST * trial.targets:
        yield trial
        return
    try:
        bar = _bar(lab, huge)
    except Unsupported as reason:
        yield replace(trial, why_not=str(reason))
        return
    task = bar.task
    trial = replace(trial, classes=task.classes, chance=task.chance, learner=bar.learner.learner, learner_score=bar.score)
    if bar.score - task.chance < WORTH_LEARNING and not (huge and parameters >= EXTREME * lab.train.samples):
        found = f"they score {bar.score:.2f}, chance {task.chance:.2f}"
        yield replace(trial, why_not=f"simple learners find too little in these data to compare with ({found})")
        return
    start = lab.bench.snapshot()
    try:
        yield _by_heart(lab, bar, trial) if huge else _as_far_as_it_gets(lab, bar, trial, start)
    finally:
        lab.bench.set_training(True)
        lab.bench.restore(start)


def _bar(lab: Lab, huge: bool) -> Bar:
    if lab.subject.step is not None:
        raise Unsupported("with a step of your own, outputs cannot be set against targets")
    if huge and (lab.validation is None or not lab.validation.batches):
        raise Unsupported("no validation data was given")
    if not huge and lab.facts.get("one_batch_left", 0.0) > ONE_BATCH_LEARNED:
        raise Unsupported("one batch is not learned either, so it is not a matter of size")
    return set_bar(lab, with_validation=huge)


def _numbers(lab: Lab) -> int:
    """In the target of one sample."""
    shapes = [array.shape for _, array in leaves(lab.batch.target, lab.adapter.is_array)]
    return max((int(np.prod(shape[1:])) for shape in shapes), default=1)


def _by_heart(lab: Lab, bar: Bar, trial: LongTraining) -> LongTraining:
    """Until everything is known by heart; then the trained model against the learner, sample by sample of validation."""
    use_working_rate(lab)
    course = _train(lab, bar, STEPS, BY_HEART, validate=True)
    mine, its = bar.validation_errors(lab), bar.learner_errors()
    return replace(
        trial,
        steps=tuple(course.steps),
        scores=tuple(course.scores),
        validation_scores=tuple(course.validation),
        validation_samples=len(mine),
        learner_validation=1 - float(its.mean()),
        p_value=_by_chance(mine - its),
    )


def _as_far_as_it_gets(lab: Lab, bar: Bar, trial: LongTraining, start: Any) -> LongTraining:
    """As the user set it up; where that is not enough, at other rates until nothing moves."""
    goal = bar.score - NEAR
    given = use_working_rate(lab)
    own = _train(lab, bar, STEPS, goal)
    trial = replace(trial, steps=tuple(own.steps), scores=tuple(own.scores))
    if own.best >= goal:
        return trial
    lab.bench.restore(start)
    found = sweep(lab, lab.train.batches, lab.time_is_up).suggested
    tries: list[tuple[float, Course]] = []
    # Large rates may kill units for good: the first that gets further than the user's own did has not.
    for rate in [r for r in (found, found and found / SAFER, given) if r]:
        lab.bench.restore(start)
        # Decay has a check of its own: here the model gets its best chance.
        lab.bench.scale_weight_decay(0.0)
        tries.append((rate, _train(lab, bar, LATER_STEPS, goal, rate=rate, hopeless=own.best - HOPELESS)))
        if tries[-1][1].best > own.best:
            break
    if not tries:
        return replace(trial, why_not="no learning rate was found at which it could try")
    rate, later = max(tries, key=lambda pair: pair[1].best)
    flat = later.best >= own.best and _is_flat(later, goal)
    return replace(trial, rate=rate, later_steps=tuple(later.steps), later_scores=tuple(later.scores), flat=flat)


def _train(
    lab: Lab,
    bar: Bar,
    steps: int,
    goal: float,
    *,
    rate: float | None = None,
    hopeless: float = -math.inf,
    validate: bool = False,
) -> Course:
    """With a rate of ours, that one, made smaller where the loss stands still."""
    course = Course()
    slower = _slower(lab, rate)
    lab.bench.set_training(True)
    for step in range(1, steps + 1):
        lab.tick()
        loss = lab.bench.step(lab.train.batches[(step - 1) % len(lab.train.batches)])
        if not math.isfinite(loss):
            break
        course.losses.append(loss)
        if step % SCORED_EVERY == 0:
            course.steps.append(step)
            course.scores.append(bar.score_of_model(lab))
            if validate:
                course.validation.append(1 - float(bar.validation_errors(lab).mean()))
            if course.scores[-1] >= goal or (rate is not None and _is_flat(course, goal)):
                break
            if len(course.scores) >= WINDOW and course.best < hopeless:
                break
        if step % PATIENCE == 0 and _stands_still(course.losses[-PATIENCE:]):
            slower()
    return course


def _slower(lab: Lab, rate: float | None) -> Callable[[], None]:
    if rate is None:
        return lambda: None
    current = [rate]
    lab.bench.set_lr(rate)

    def lower() -> None:
        current[0] /= SLOWER
        lab.bench.set_lr(current[0])

    return lower


def _stands_still(losses: list[float]) -> bool:
    half = len(losses) // 2
    return float(np.mean(losses[half:])) > (1 - STILL) * float(np.mean(losses[:half]))


def _is_flat(course: Course, goal: float) -> bool:
    if len(course.scores) < 2 * WINDOW:
        return False
    before, after = np.mean(course.scores[-2 * WINDOW : -WINDOW]), np.mean(course.scores[-WINDOW:])
    steps = WINDOW * SCORED_EVERY
    high, low = np.mean(course.losses[-2 * steps : -steps]), np.mean(course.losses[-steps:])
    return bool(after - before < FLAT_SCORE * (goal - course.best) and high - low < FLAT_LOSS * abs(high))


def _by_chance(differences: np.ndarray) -> float:
    """One-sided: how likely the model's errors are so much larger in sum, had each difference either sign alike."""
    size = math.sqrt(float(np.square(differences).sum()))
    return 0.5 * math.erfc(float(differences.sum()) / size / math.sqrt(2)) if size > 0 else 1.0
