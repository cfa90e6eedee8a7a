"""The loss swings and makes no progress."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sleuth.checks.evidence.loss_leaps import SIDE, Leap, keep_time, leaps_in
from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.finding import Series
from sleuth.core.observation import Call, Ending, Step
from sleuth.core.reading.curve import Curve, autocorrelation, find_relapse, guessing, level, line, loss_curve
from sleuth.core.stage import Severity, Stage

LEAST_STEPS = 200
# Of all that was gained: a training that is done swings by less about its floor.
SWING = 0.5
# Of the variance: random batches give losses that do not know of each other.
TURNING = -0.4
# Steps: swings that overshooting makes are short; longer ones are the data's or the schedule's.
LONGEST = 32
# Losses that come in turn on purpose, as of two tasks, do so in the same order from the beginning; so many at most.
IN_TURN = 0.8
MOST_IN_TURN = 8
# Of the variance: longer waves are smooth; data in a fixed order are not.
SMOOTH = 0.8
# Sixteen steps of which fifteen lie on the same side of the middle: random batches do that once in two thousand times.
TIDE_STEPS = 16
TIDES = 6
# Of the start: low water; high water stands above it.
EBB = 0.7
# Of the loss of guessing, and of the first steps: here nothing is known yet, or any more.
UNTRAINED = 0.8
# Of the early lows: a training that gets lower each time gets somewhere.
BETTER = 0.8
# Of a rise: a fall that is as sudden.
FULL = 0.8
# Of the variance: what comes again after so many steps is the order of the data.
COMES_AGAIN = 0.6
# Standard errors: a loss that still falls makes progress.
ERRORS = 3.0
START_STEPS = 3
# Times: swings that follow the rate's own are meant.
RATE_MOVES = 2.0


@check(
    code="T405",
    stage=Stage.TRAINING,
    severity=Severity.WARNING,
    reads=(Step, (Call, Ending)),
    explains=("underfitting", "loss-spikes"),
    title="The loss swings without making progress",
    why="""A step that is too long leaps over the valley and lands on its other side, the next one leaps back. The loss
    visits low values again and again and cannot stay there.""",
    fix="""Lower the learning rate three to ten times, or let it decay; with momentum of 0.95 and more lower the momentum;
    clip the gradients; take larger batches.""",
    symptoms=(
        "loss oscillates",
        "loss jumps up and down",
        "loss fluctuates",
        "loss bounces around",
        "loss is unstable",
        "training loss is noisy and does not go down",
    ),
    decided_by="the size of the swings against what was gained, and the autocorrelation of the losses",
)
def loss_oscillates(seen: Seen, *, swing: float = SWING, turning: float = TURNING) -> Iterator[Evidence | NotExamined]:
    curve = loss_curve(seen, LEAST_STEPS)
    if isinstance(curve, str):
        yield NotExamined(curve)
        return
    start = float(curve.losses[:START_STEPS].max())
    if (leaps := _thrown_back(curve, guessing(seen), swing)) is not None:
        yield _again_and_again(curve, leaps)
        return
    late = curve.losses[len(curve) // 2 :]
    low, high = float(np.quantile(late, 0.1)), float(np.quantile(late, 0.9))
    since = _relapsed(seen, curve, start, swing)
    if since is None and not _in_waves(curve, start, swing, turning) and not _in_tides(curve, start):
        return
    step = int(curve.steps[len(curve) // 2 if since is None else since])
    yield Evidence(
        summary=f"since step {step:,} the loss goes up and down between {low:.3g} and {high:.3g} and does not settle "
        f"(start: {start:.3g})",
        numbers={"start": start, "low": low, "high": high, "step": step},
        series=(_series(curve),),
        first_step=step,
        last_step=int(curve.steps[-1]),
        strength=(high - low) / max(swing * abs(start), 1e-30),
    )


def _thrown_back(curve: Curve, guess: float | None, swing: float) -> list[Leap] | None:
    """It is learned, forgotten at a stroke and learned anew, over and over, and never better than before."""
    untrained = float(curve.losses[:SIDE].mean())
    if guess is None or curve.losses[0] < UNTRAINED * guess or _rate_moves(curve):
        return None
    leaps = [
        leap
        for leap in leaps_in(curve.losses)
        if leap.high > UNTRAINED * untrained and leap.high - leap.low > swing * (untrained - leap.low) > 0
    ]
    if len(leaps) < TIDES or leaps[-1].place < len(curve) * 3 // 4:
        return None
    lows = np.array([leap.low for leap in leaps])
    better = lows[len(lows) // 2 :].min() < BETTER * lows[: len(lows) // 2].min()
    # Batches of another kind are hard and easy by turns: their losses fall as suddenly as they rise.
    height = float(np.median([leap.high - leap.low for leap in leaps]))
    drops = [leap for leap in leaps_in(-curve.losses) if leap.high - leap.low > FULL * height]
    return None if better or len(drops) > len(leaps) / 3 else leaps


def _again_and_again(curve: Curve, leaps: list[Leap]) -> Evidence:
    start = float(curve.losses[:SIDE].mean())
    low, high = float(np.median([leap.low for leap in leaps])), float(np.median([leap.high for leap in leaps]))
    steps = [int(curve.steps[leap.place]) for leap in leaps]
    every = int(np.median(np.diff(steps)))
    regular = keep_time(leaps)
    return Evidence(
        summary=f"{len(leaps)} times the loss is down at about {low:.3g} and leaps to about {high:.3g}, as if nothing had been "
        f"learned (first steps: {start:.3g}), {f'every {every} steps' if regular else 'now and then'}, first at step "
        f"{steps[0]:,}; in between the steps bring it down anew",
        fix=f"Look at what the loop does every {every} steps, such as at step {steps[0]:,}: weights that are loaded, reset or "
        "rescaled, or data and labels that become others."
        if regular
        else None,
        numbers={"start": start, "low": low, "high": high, "times": len(leaps), "every": every, "step": steps[0]},
        series=(_series(curve),),
        # What keeps time is no overshooting of steps that are too long, whatever else may be said of them.
        first_step=None if regular else steps[0],
        last_step=steps[-1],
        strength=float(len(leaps)),
    )


def _series(curve: Curve) -> Series:
    return Series("loss", tuple(curve.steps.astype(float).tolist()), tuple(curve.losses.tolist()))


def _relapsed(seen: Seen, curve: Curve, start: float, swing: float) -> int | None:
    """It was low and calm once, and since then low values are visited only."""
    relapse = find_relapse(curve.losses)
    if relapse is None or relapse.recovering or relapse.swings[0] > relapse.low:
        return None
    gained = max(start, guessing(seen) or start) - relapse.low
    if relapse.late - relapse.low < swing * gained or gained < swing * abs(relapse.low) or _rate_moves(curve):
        return None
    return relapse.since


def _in_waves(curve: Curve, start: float, swing: float, turning: float) -> bool:
    late = curve.losses[len(curve) // 2 :]
    course = line(late)
    gained = start - level(late).mean
    height = float(np.quantile(late, 0.9) - np.quantile(late, 0.1))
    thinned = curve.steps[-1] - curve.steps[0] >= 2 * len(curve)
    if course.fall > ERRORS * course.error or gained <= 0 or height < swing * gained or _rate_moves(curve) or thinned:
        return False
    lags = [autocorrelation(late, lag) for lag in range(1, LONGEST)]
    half = int(np.argmin(lags)) + 1
    meant = _in_turn(curve.losses, 2 * half) if 2 * half <= MOST_IN_TURN else lags[0] < SMOOTH
    return lags[half - 1] < turning and not meant


def _in_tides(curve: Curve, start: float) -> bool:
    """Long swings: whole stretches far below the start and far above it take turns."""
    losses = curve.losses[len(curve) // 4 :]
    stretches = losses[: len(losses) // TIDE_STEPS * TIDE_STEPS].reshape(-1, TIDE_STEPS)
    above = (stretches > np.median(losses)).sum(axis=1)
    sides = [count > 1 for count in above if count <= 1 or count >= TIDE_STEPS - 1]
    turns = sum(a != b for a, b in pairwise(sides))
    if turns < TIDES or start <= 0 or _rate_moves(curve):
        return False
    low, high = np.median(stretches[above <= 1]), np.median(stretches[above >= TIDE_STEPS - 1])
    levels = stretches.mean(axis=1)
    again = max((autocorrelation(levels, lag) for lag in range(2, len(levels) // 2)), default=0.0)
    return bool(low < EBB * start and high > start and again < COMES_AGAIN)


def _in_turn(losses: np.ndarray, period: int) -> bool:
    """Do the losses come in the same order of large and small in the beginning as at the end?"""
    periods = len(losses) // period
    folded = losses[: periods * period].reshape(periods, period)
    early, late = folded[: max(1, periods // 4)].mean(axis=0), folded[-max(1, periods // 4) :].mean(axis=0)
    if early.std() == 0 or late.std() == 0:
        return False
    return bool(np.corrcoef(early, late)[0, 1] > IN_TURN)


def _rate_moves(curve: Curve) -> bool:
    """Up and down: a rate that only decays makes no waves."""
    rates = curve.rates[len(curve) // 4 :]
    rates = rates[np.isfinite(rates) & (rates > 0)]
    return len(rates) > 1 and bool((rates / np.minimum.accumulate(rates)).max() > RATE_MOVES)
