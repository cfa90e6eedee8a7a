"""Learning rates: the one that training will use, and the range test that looks for a better one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.contract.adapter import Describes
from sleuth.core.subject import Parts
from sleuth.probes.lab.probe import Lab

# From where no optimiser moves a weight to where every one blows up, ten steps a decade.
LOWEST = 1e-6
HIGHEST = 1e2
STEPS = 80
# The loss is far beyond recovery: no larger rate is worth trying.
BLOWN_UP = 4.0
# Weight of the past in the smoothed curve: about five steps, half a decade.
SMOOTHING = 0.8
# Where the loss is lowest the rate is already the largest that works; a tenth of it is safe for a whole training.
BELOW_LOWEST = 10.0
# Of the whole fall. Where nothing is left to learn the loss lies flat at its bottom while the rate goes on rising: the rate
# that got it down is the first one this near to the bottom.
NEARLY = 0.05
# A fall below this many times the noise of the curve may be chance; one below a thousandth is not worth having.
CLEAR = 3.0
LEAST_FALL = 1e-3
LEAST_CURVE = 5


@dataclass(frozen=True)
class Sweep:
    rates: tuple[float, ...]
    losses: tuple[float, ...]
    suggested: float | None
    reason: str


def use_working_rate(lab: Lab) -> float | None:
    """The rate that training runs at. A schedule's warm-up may hold it near zero at this moment: then the rate that the
    schedule starts from is set, or the one that the training was seen to come to. None when sleuth's own stand-in optimises."""
    rate = lab.bench.lr
    planned = lab.rate or planned_rate(lab)
    if rate is None or planned is None or planned <= rate:
        return rate
    lab.bench.set_lr(planned)
    return planned


def planned_rate(lab: Lab) -> float | None:
    """What a scheduler remembers as the rate it scales; None without a scheduler."""
    if not isinstance(lab.adapter, Describes):
        return None
    planned = lab.adapter.settings(lab.subject).optimiser_options.get("initial_lr")
    return float(planned) if isinstance(planned, int | float) else None


def sweep(
    lab: Lab,
    batches: Sequence[Parts],
    stop: Callable[[], bool],
    steps: int = STEPS,
    *,
    lowest: float = LOWEST,
    highest: float = HIGHEST,
) -> Sweep:
    """Train on while the rate rises exponentially. The caller restores the bench.

    Each loss is set against that of the same batch before the first step, so that easy and hard batches look alike.
    """
    lab.bench.set_training(True)
    before = [lab.bench.loss(batch) for batch in batches[:steps]]
    usual = float(np.mean(before))
    rates: list[float] = []
    losses: list[float] = []
    for step, rate in enumerate(np.geomspace(lowest, highest, steps)):
        if stop():
            break
        lab.bench.set_lr(float(rate))
        loss = lab.bench.step(batches[step % len(batches)]) - before[step % len(batches)] + usual
        if not math.isfinite(loss):
            break
        rates.append(float(rate))
        losses.append(loss)
        if loss - usual > BLOWN_UP * max(abs(usual), 1e-6):
            break
    suggested, reason = suggest(rates, losses)
    return Sweep(tuple(rates), tuple(losses), suggested, reason)


def suggest(rates: Sequence[float], losses: Sequence[float]) -> tuple[float | None, str]:
    """One rate and why, or None and why not. The loss of step i is that of the weights before the step at rate i."""
    if len(losses) < LEAST_CURVE:
        return None, "the loss blew up at once"
    curve = smooth(losses)
    # At the lowest rates nothing moves: what differs there is noise.
    quiet = np.array(losses[: max(LEAST_CURVE, len(losses) // 4)])
    start, noise = float(quiet.mean()), float(quiet.std())
    lowest = int(np.argmin(curve))
    if start - curve[lowest] <= max(CLEAR * noise, LEAST_FALL * abs(start)):
        return None, "at no rate did the loss fall beyond its noise"
    arrived = int(np.argmax(curve <= curve[lowest] + NEARLY * (start - curve[lowest])))
    rate = rates[max(arrived - 1, 0)]
    return rate / BELOW_LOWEST, f"a tenth of {rate:.1e}, where the loss was nearly at its lowest while the rate rose"


def smooth(losses: Sequence[float]) -> np.ndarray:
    """Exponential average without the bias of its first values."""
    curve = np.empty(len(losses))
    total = weight = 0.0
    for i, loss in enumerate(losses):
        total = SMOOTHING * total + (1 - SMOOTHING) * loss
        weight = SMOOTHING * weight + (1 - SMOOTHING)
        curve[i] = total / weight
    return curve
