"""Weight decay takes back what the gradient gains."""

from collections.abc import Iterator

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import DecayTrial, Overfit

# Of what the same steps gain without decay. Usual decays cost a twentieth; strong ones that help later, a tenth.
COSTS = 0.3
# The same where the loss is that of samples which were trained on: there decay is allowed to cost something.
COSTS_TRAINED = 0.5
# Of the start: what must be gained without decay for a comparison to mean anything, also at a slow rate.
CLEAR_FALL = 0.03
ERRORS = 5.0
# Decay undoes at least half of what gradients do.
OUTWEIGHS = 0.5
# Of the loss of one batch, above its floor, as cannot-overfit-one-batch has them: with more left the batch was not learned by
# heart, and up to ALMOST that is worth a hint.
LEARNED = 0.01
ALMOST = 0.1
# Of what the decay leaves of it: without decay, no more than this.
FREED = 0.3
# As cannot-overfit-one-batch has it: a run that gains less over its last third stands still.
STANDS_STILL = 0.2


@check(
    code="H504",
    stage=Stage.HYPERPARAMETERS,
    severity=Severity.WARNING,
    reads=((DecayTrial, Overfit),),
    explains=(
        "loss-not-decreasing",
        "loss-not-finite",
        "gradient-not-finite",
        "loss-diverges",
        "loss-oscillates",
        "cannot-overfit-one-batch",
        "learns-without-input",
        "learning-rate-too-high",
        "learning-rate-too-low",
        "vanishing-gradients",
        "update-too-large",
        "weights-grow",
        "units-dying",
        "predicts-one-class",
        "underfitting",
        "stopped-too-early",
        "capacity-too-small",
    ),
    title="Weight decay outweighs the gradient",
    why="""Each step draws every weight towards zero by a share of itself, whatever the data say. When that is more than the
    gradient adds, the weights shrink until the model answers the same to everything.""",
    fix="Lower weight_decay: 1e-4 with SGD, 0.01 to 0.1 with AdamW.",
    symptoms=(
        "weight decay too high",
        "training loss stays high",
        "underfitting",
        "loss goes up again",
        "the loss stops at the value of guessing",
        "weights shrink to zero",
    ),
    decided_by="the same steps from the same start with and without weight decay",
)
def weight_decay_too_strong(
    seen: Seen, *, costs: float = COSTS, costs_trained: float = COSTS_TRAINED, outweighs: float = OUTWEIGHS
) -> Iterator[Evidence | NotExamined]:
    memorised = seen.maybe(Overfit)
    on_one_batch = None if memorised is None else _of_one_batch(memorised)
    found = [] if memorised is None else list(_of_training(seen, memorised, costs, costs_trained, outweighs))
    if on_one_batch is not None and not any(isinstance(one, Evidence) for one in found):
        yield on_one_batch
    else:
        yield from found or _unknown(seen)


def _unknown(seen: Seen) -> Iterator[NotExamined]:
    for what in (DecayTrial, Overfit):
        if seen.maybe(what) is None:
            yield NotExamined(seen.why_absent(what) or "one of the experiments behind it did not run")
            return


def _of_training(
    seen: Seen, memorised: Overfit, costs: float, costs_trained: float, outweighs: float
) -> Iterator[Evidence | NotExamined]:
    trial = seen.maybe(DecayTrial)
    if trial is None or not trial.steps or trial.start is None or trial.free_end is None:
        return
    gain = trial.start - trial.free_end
    if gain < max(CLEAR_FALL * abs(trial.start), ERRORS * (trial.difference_error or 0.0)):
        return
    judged_fairly = trial.held_out or trial.validation_end is not None
    if trial.end is not None and not _costs(trial, gain, costs if judged_fairly else costs_trained, outweighs):
        return
    if not memorised.plain:
        yield NotExamined("this loss need not fall while training works")
        return
    reached = "blows up" if trial.end is None else f"reaches {trial.end:.3g}"
    yield Evidence(
        summary=f"in {trial.steps} steps with weight_decay={trial.decay:g} the loss {reached}; the same steps from the same "
        f"start ({trial.start:.3g}) without decay reach {trial.free_end:.3g}{_weighed(trial)}",
        fix=f"Lower weight_decay from {trial.decay:g} to {_usual(trial.decay):g}, or leave it out.",
        numbers={
            "weight_decay": trial.decay,
            "start": trial.start,
            "end": trial.end,
            "end_without": trial.free_end,
            "decay_over_gradient": trial.pull,
            "decay_over_gradient_later": trial.later_pull,
        },
        series=(
            Series("loss with weight decay", _steps(trial.losses), trial.losses),
            Series("loss without", _steps(trial.free_losses), trial.free_losses),
        ),
        strength=gain / max(trial.free_end, 1e-6 * gain) if trial.end is None else (trial.end - trial.free_end) / gain / costs,
    )


def _costs(trial: DecayTrial, gain: float, costs: float, outweighs: float) -> bool:
    assert trial.end is not None
    assert trial.free_end is not None
    lost = trial.end - trial.free_end
    if lost < max(costs * gain, ERRORS * (trial.difference_error or 0.0)):
        return False
    if (trial.later_pull or 0.0) < outweighs and trial.pull < outweighs:
        return False
    # Decay that costs in training and helps in validation does what it is for.
    with_decay, without = trial.validation_end, trial.validation_free_end
    return with_decay is None or without is None or with_decay - without > costs * gain / 2


def _weighed(trial: DecayTrial) -> str:
    pull = max(trial.pull, trial.later_pull or 0.0)
    return f"; decay moves the weights {pull:.2g} times as far as the gradient does" if pull < 1e6 else ""


def _usual(decay: float) -> float:
    """A hundredth of it, where that is a usual value; else the largest usual one."""
    return float(f"{min(decay / 100, 0.1):.0e}")


def _of_one_batch(trial: Overfit) -> Evidence | None:
    """A batch that is not learned by heart with the decay, and is without it."""
    if not trial.decay or not trial.free_losses or not (trial.floor_known and trial.plain and trial.complete):
        return None
    left, free = trial.remaining(trial.best), trial.remaining(trial.free_losses)
    if left <= (ALMOST if trial.dense else LEARNED) or free > FREED * left or trial.still_falls(trial.best, STANDS_STILL):
        return None
    start, end, free_end = trial.best[0], min(trial.best[-5:]), min(trial.free_losses[-5:])
    return Evidence(
        summary=f"trained on {trial.samples or 'the same'} samples alone, with weight_decay={trial.decay:g} the loss goes from "
        f"{start:.3g} to {end:.3g} and stands still; without decay it comes to {free_end:.3g}",
        fix=f"Lower weight_decay from {trial.decay:g} to {_usual(trial.decay):g}, or leave it out.",
        numbers={"weight_decay": trial.decay, "start": start, "end": end, "end_without": free_end},
        series=(
            Series("loss with weight decay", _steps(trial.best), trial.best),
            Series("loss without", _steps(trial.free_losses), trial.free_losses),
        ),
        first_step=1,
        severity=Severity.WARNING if left > ALMOST else Severity.HINT,
        strength=left / ALMOST,
    )


def _steps(losses: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(float(i) for i in range(1, len(losses) + 1))
