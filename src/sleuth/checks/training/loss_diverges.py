"""The loss rises for good."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Call, Ending, Step
from sleuth.core.reading.curve import Curve, Relapse, find_relapse, guessing, heard_curve, line, loss_curve
from sleuth.core.stage import Severity, Stage

# Large rates raise the loss for some dozens of steps and lower it afterwards.
LEAST_STEPS = 100
# Of all that was gained: less is lost when the data become harder or a penalty is phased in.
LOST = 0.5
# Times the start, by nine of ten losses.
ABOVE_START = 1.5
# Times the lowest level, where nobody knows what an untrained model has: a converged one that is trained on rises a little.
BLOWN_UP = 10.0
START_STEPS = 3
# Times the first losses: values that a model learns from its own answers grow from nothing to a hundred times the reward, and
# squares of them to the square of that; but not on and on.
RUNAWAY = 1e4
# A training that finds its first rewards late has a loss of almost nothing until then, and one rise. This many parts rise all,
# each by so much.
PARTS = 10
RISES = 1.1
# A rate that was raised since may explain a higher level: cycles do that.
RAISED = 1.5


@check(
    code="T404",
    stage=Stage.TRAINING,
    severity=Severity.ERROR,
    reads=(Step, (Call, Ending)),
    explains=("underfitting", "predicts-one-class", "loss-not-decreasing"),
    title="The loss rises for good",
    why="""A step that helps lowers the loss. A loss that climbs and does not come down again means that steps undo what was
    learned: they are too long, or what is to be learned has changed.""",
    fix="""Go back to the weights from before the rise and lower the learning rate three to ten times; clip the gradients.
    If the rate is not to blame, look at what changed at that step: data, targets, schedule.""",
    symptoms=(
        "loss goes up",
        "loss explodes",
        "loss diverges",
        "loss suddenly increases and never comes back",
        "loss starts rising after some epochs",
        "training collapses",
    ),
    decided_by="the end of the loss curve against its lowest calm part and against its start",
)
def loss_diverges(seen: Seen, *, lost: float = LOST, above_start: float = ABOVE_START) -> Iterator[Evidence | NotExamined]:
    curve = loss_curve(seen, LEAST_STEPS)
    if isinstance(curve, str):
        runaway = _runs_away(seen)
        yield runaway if runaway is not None else NotExamined(curve)
        return
    start = float(curve.losses[:START_STEPS].max())
    relapse = find_relapse(curve.losses)
    found = None
    if relapse is not None and relapse.swings[0] > relapse.low:
        found = _since_low(seen, curve, relapse, start, lost)
    found = found or _from_start(curve, start, above_start)
    if found is not None:
        yield found


def _since_low(seen: Seen, curve: Curve, relapse: Relapse, start: float, lost: float) -> Evidence | None:
    untrained = max(start, guessing(seen) or start)
    gained, rise = untrained - relapse.low, relapse.late - relapse.low
    above = relapse.swings[0] > untrained
    if relapse.recovering or (not above and (not relapse.sudden or _raised(curve, relapse))):
        return None
    # A loss that goes below zero weighs something by chance or by a rival: a policy's may rise while the rewards hold.
    if relapse.low < 0 and not above:
        return None
    if rise < lost * gained or (gained < lost * abs(relapse.low) and rise < BLOWN_UP * abs(relapse.low)):
        return None
    step = int(curve.steps[relapse.since])
    return Evidence(
        summary=f"the loss was down to {relapse.low:.3g}, rises from step {step:,} on and stays at {relapse.late:.3g} "
        f"(start: {start:.3g})",
        numbers={"start": start, "lowest": relapse.low, "late": relapse.late, "step": step},
        series=(_series(curve),),
        first_step=step,
        last_step=int(curve.steps[-1]),
        strength=rise / max(lost * gained, 1e-30) if gained > 0 else rise,
    )


def _runs_away(seen: Seen) -> Evidence | None:
    """Losses whose level says little, as those of reinforcement learning, have some bound all the same."""
    curve = heard_curve(seen)
    if isinstance(curve, str) or len(curve) < LEAST_STEPS:
        return None
    levels = np.array([np.median(part) for part in np.array_split(curve.losses, PARTS)])
    if levels[0] <= 0 or levels[-1] < RUNAWAY * levels[0] or (levels[1:] < RISES * levels[:-1]).any():
        return None
    begun = int(curve.steps[np.flatnonzero(curve.losses <= levels[0])[-1]])
    return Evidence(
        summary=f"the loss was {levels[0]:.3g} in the first steps, is {levels[-1]:.3g} now and never stopped rising: what it is "
        "measured against seems to grow with it",
        fix="Where the model's own answers are its targets, take them from a second copy that follows slowly, and let what comes "
        "later count less (a discount below 1); lower the learning rate three to ten times.",
        numbers={"start": float(levels[0]), "late": float(levels[-1]), "step": begun},
        series=(_series(curve),),
        first_step=begun,
        last_step=int(curve.steps[-1]),
        strength=float(levels[-1] / levels[0]) / RUNAWAY,
    )


def _raised(curve: Curve, relapse: Relapse) -> bool:
    before, late = curve.rates[relapse.since - 1], np.nanmedian(curve.rates[-len(curve) // 4 :]) if _rated(curve) else np.nan
    return bool(late > RAISED * before)


def _rated(curve: Curve) -> bool:
    return bool(np.isfinite(curve.rates).any())


def _from_start(curve: Curve, start: float, above_start: float) -> Evidence | None:
    """No calm part at all: it rose at once."""
    half = curve.losses[len(curve) // 2 :]
    low, late, course = float(np.quantile(half, 0.1)), float(np.median(half)), line(half)
    recovering = course.fall > max(3 * course.error, 0.1 * (late - start))
    if recovering or start <= 0 or low < above_start * start:
        return None
    first = int(np.argmax(curve.losses > above_start * start))
    return Evidence(
        summary=f"the loss began at {start:.3g} and rose at once: nine of ten losses of the later half are above {low:.3g}",
        numbers={"start": start, "late": late, "step": int(curve.steps[first])},
        series=(_series(curve),),
        first_step=int(curve.steps[first]),
        last_step=int(curve.steps[-1]),
        strength=low / (above_start * start),
    )


def _series(curve: Curve) -> Series:
    return Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(curve.losses.tolist()))
