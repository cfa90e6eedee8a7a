"""What a schedule of learning rates, a function of the step, comes to."""

from collections.abc import Callable

import numpy as np

# A warm-up may take any number of steps; denser at first, where most of them are.
ASKED = (0, *(int(n) for n in np.unique(np.geomspace(1, 1e6, 60).astype(int))))


def highest(rate: Callable[[int], float]) -> float | None:
    """The highest rate; None where the schedule is the user's own and does not answer."""
    try:
        found = max(float(rate(step)) for step in ASKED)
    except Exception:
        return None
    return found if np.isfinite(found) else None
