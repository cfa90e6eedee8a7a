"""A learning rate that rises on and on, and takes the loss along."""

from dataclasses import dataclass

import numpy as np

from sleuth.core.history import Seen
from sleuth.core.reading.curve import Curve, find_relapse, loss_curve

LEAST_STEPS = 100
# Times the rate at which the loss was lowest: less may be the noise of the minimum's place.
RAISED = 1.5
# Of what was gained: a loss that gives back less may come down again.
LOST = 0.5
START_STEPS = 3
# Of the last rate, half way: whoever looks for a rate multiplies it at every step, and most of the way is far below the end.
HALF_WAY = 0.1
# Of the curve: what is averaged to find where the loss was lowest.
PARTS = 32


@dataclass(frozen=True)
class Climb:
    start: float
    low: float
    late: float
    low_step: int
    low_rate: float
    last_rate: float


def climb(seen: Seen) -> Climb | None:
    curve = loss_curve(seen, LEAST_STEPS)
    if isinstance(curve, str) or not (np.isfinite(curve.rates).all() and (curve.rates > 0).all()):
        return None
    relapse = find_relapse(curve.losses)
    if relapse is None or relapse.recovering:
        return None
    start, at = float(curve.losses[:START_STEPS].max()), _lowest(curve)
    rising = bool((np.diff(curve.rates[at:]) >= 0).all()) and curve.rates[-1] > RAISED * curve.rates[at]
    searching = curve.rates[len(curve) // 2] < HALF_WAY * curve.rates[-1]
    if not rising or searching or relapse.late - relapse.low < LOST * (start - relapse.low):
        return None
    step = int(curve.steps[at])
    return Climb(start, relapse.low, relapse.late, step, float(curve.rates[at]), float(curve.rates[-1]))


def _lowest(curve: Curve) -> int:
    size = max(len(curve) // PARTS, 1)
    return int(np.argmin(np.convolve(curve.losses, np.full(size, 1 / size), "valid"))) + size // 2
