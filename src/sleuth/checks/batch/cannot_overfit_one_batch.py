"""The model cannot memorise one batch."""

from collections.abc import Iterator

from sleuth.checks.evidence.one_batch_obstacle import Obstacle, obstacle, ruled_out
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Alignment, Overfit

# Shares of the loss above its floor that are left in the end: below the first the batch is known by heart, above the
# last nothing much was learned. Images and sequences hold details without end: for them ALMOST is by heart.
LEARNED = 0.01
ALMOST = 0.1
HALF = 0.5
# Over the last third of the steps a healthy run still loses a third of what is left, as 1/t does; less stands still.
STANDS_STILL = 0.2
# Of what one answer for all leaves: who gains less on many samples does not tell them apart.
UNTOLD = 0.05
# Held-out R² of simple learners, and its error rate: so much could be told from the inputs.
LEARNABLE = 0.5
CHANCE = 1e-3


@check(
    code="B301",
    stage=Stage.BATCH,
    severity=Severity.ERROR,
    reads=(Overfit,),
    explains=(
        "loss-not-decreasing",
        "learns-without-input",
        "underfitting",
        "predicts-one-class",
        "loss-oscillates",
        "capacity-too-small",
    ),
    title="The model cannot memorise one batch",
    why="""A model with enough parameters can learn a handful of samples by heart, whatever they mean. One that cannot has a
    fault in the model, the loss or the update: more data and more time will not help.""",
    fix="""Look for what keeps the information of a sample from reaching the output: a layer that is too narrow, pooling over too
    much, noise or regularisation that is too strong, an update with the wrong sign.""",
    decided_by="the loss after training on one batch alone",
    symptoms=(
        "cannot overfit a single batch",
        "does not even memorise a few samples",
        "training loss stays high",
        "model does not learn anything",
        "underfitting",
    ),
)
def cannot_overfit_one_batch(
    seen: Seen, *, learned: float = LEARNED, almost: float = ALMOST, half: float = HALF, stands_still: float = STANDS_STILL
) -> Iterator[Evidence | NotExamined]:
    trial = seen.one(Overfit)
    best = trial.best
    left = trial.remaining(best)
    start, final = best[0], min(best[-5:])
    if not trial.floor_known and start <= 0:
        yield NotExamined("how low this loss can get is not known")
    elif left < (almost if trial.dense else learned):
        yield from _judge_crowd(seen, trial)
    elif not trial.floor_known and left < half and min(best) >= 0:
        return  # even if zero were the floor, more than half is learned: nothing is broken
    elif not trial.floor_known:
        yield NotExamined(f"it went from {start:.3g} to {final:.3g}; {trial.floor_reason}")
    elif not trial.complete:
        yield NotExamined(f"time ran out at a loss of {final:.3g} (start {start:.3g})")
    elif trial.still_falls(best, stands_still):
        yield NotExamined(f"the loss still fell after {len(best)} steps: {start:.3g} → {final:.3g}")
    else:
        reason = obstacle(seen, trial, best)
        yield Evidence(
            summary=_summary(trial, start, final) + _reasons(seen, trial, reason),
            fix=reason.fix if reason else None,
            severity=Severity.ERROR if left > half else Severity.WARNING if left > almost else Severity.HINT,
            numbers={"start": start, "final": final, "floor": trial.floor, "left": left, "samples": trial.samples},
            series=_series(trial),
            first_step=1,
            strength=left / learned,
        )


def _judge_crowd(seen: Seen, trial: Overfit) -> Iterator[Evidence]:
    """A model with few parameters learns the few samples it has room for; can it tell more of them apart at all?"""
    crowd, alignment = trial.crowd, seen.maybe(Alignment)
    if crowd is None or alignment is None or crowd.gained > UNTOLD + crowd.chance:
        return
    if alignment.skill < LEARNABLE or alignment.p_value > CHANCE:
        return  # nobody else finds more in these inputs
    yield Evidence(
        summary=f"trained on {crowd.samples} samples alone, at any rate, the loss gets to {crowd.loss:.3g}, which is what one "
        f"and the same answer for all reaches ({crowd.constant:.3g}), while a simple learner ({alignment.learner}) tells "
        f"{alignment.skill:.0%} of the targets from these inputs: this model cannot express it",
        fix="Give the model a hidden layer with an activation, of some 32 units (in torch: nn.Sequential(nn.Linear(inputs, 32), "
        "nn.ReLU(), nn.Linear(32, outputs))).",
        numbers={"loss": crowd.loss, "constant": crowd.constant, "samples": crowd.samples, "skill": alignment.skill},
        first_step=1,
        strength=alignment.skill / LEARNABLE,
    )


def _summary(trial: Overfit, start: float, final: float) -> str:
    samples = f"{trial.samples} samples" if trial.samples else "one batch"
    floor = "" if trial.floor == 0 else f" (it could reach {trial.floor:.3g}: {trial.floor_reason})"
    any_rate = "" if trial.tuned_lr else ", at any rate"
    return f"trained on {samples} alone, the loss goes from {start:.3g} to {final:.3g}{floor} and stands still{any_rate}"


def _reasons(seen: Seen, trial: Overfit, found: Obstacle | None) -> str:
    excluded = list(ruled_out(seen, trial))
    pointer = f". What the numbers point to: {found.sign}" if found else ""
    return pointer + (f". Ruled out: {', '.join(excluded)}" if excluded else "")


def _series(trial: Overfit) -> tuple[Series, ...]:
    curves = {"your rate": trial.losses, "tuned rate": trial.tuned_losses}
    return tuple(Series(name, tuple(float(i + 1) for i in range(len(y))), y) for name, y in curves.items() if y)
