"""A loss that falls, leaps back up and must be brought down anew."""

from dataclasses import dataclass

import numpy as np

# Steps on either side: eight losses all above the eight before them are chance once in ten thousand times.
SIDE = 8
# Of the median: intervals that differ by less keep time.
CLOCKWORK = 0.15


@dataclass(frozen=True)
class Leap:
    place: int  # in the curve
    low: float  # the level before
    high: float  # and after


def leaps_in(losses: np.ndarray) -> list[Leap]:
    """Places where every loss of the next few steps is above every one of the last few."""
    if len(losses) < 2 * SIDE:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(losses, SIDE)
    before, after = windows[:-SIDE], windows[SIDE:]
    lows, highs = before.mean(axis=1), after.mean(axis=1)
    clear = np.flatnonzero(after.min(axis=1) > before.max(axis=1))
    found: list[Leap] = []
    for near in np.split(clear, np.flatnonzero(np.diff(clear) > SIDE) + 1):
        if len(near):
            best = int(near[(highs - lows)[near].argmax()])
            found.append(Leap(best + SIDE, float(lows[best]), float(highs[best])))
    return found


def keep_time(leaps: list[Leap]) -> bool:
    """Steps that overshoot do so now and then; what comes at equal intervals is done by the loop or by the data."""
    between = np.diff([leap.place for leap in leaps])
    return len(between) > 1 and bool(np.abs(between - np.median(between)).max() <= max(1.0, CLOCKWORK * np.median(between)))
