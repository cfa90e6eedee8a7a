"""A clock for experiments on a machine that others use too."""

import time
from collections.abc import Callable

# Whoever waits is promised some seconds, and waits this many times as long at most.
PATIENCE = 3.0


def shared_clock(
    wall: Callable[[], float] = time.monotonic, worked: Callable[[], float] = time.process_time
) -> Callable[[], float]:
    """Seconds in which this process had the processor, as far as they are fewer than those that went by: beside other work the
    same experiments fit into the same time. Waiting counts too, for its part."""
    wall_began, work_began = wall(), worked()

    def now() -> float:
        passed = wall() - wall_began
        return max(passed / PATIENCE, min(passed, worked() - work_began))

    return now
