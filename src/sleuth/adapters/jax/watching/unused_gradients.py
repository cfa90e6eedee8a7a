"""Gradients that nobody uses: they are taken again and again, and the weights stay what they are."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.observation import Frame, Observation, Pending, Role
from sleuth.core.statistics import COLUMNS

COUNT, ZEROS = COLUMNS.index("count"), COLUMNS.index("zeros")


class Unused:
    def __init__(self) -> None:
        self._looks = 0
        self._moved = False

    def hear(self, observation: Observation) -> None:
        if isinstance(observation, Frame) and observation.role is Role.UPDATE:
            self._looks += 1
            # What has become NaN has moved as well.
            self._moved |= bool(np.any(observation.table[:, COUNT] != observation.table[:, ZEROS]))

    def at_the_end(self, steps: int, *, updated: bool, discarded: int = 0) -> Iterator[Observation]:
        """`updated`: updates were heard, whatever became of them; `discarded`: so many, and none of them was kept."""
        if discarded:
            counts = {"backward": steps, "discarded-step": discarded}
            yield Pending(0, ("forward", "backward", "discarded-step"), counts, optimisers=1, idle={0: discarded})
        elif self._looks and not self._moved and not updated:
            yield Pending(0, ("forward", "backward"), {"backward": steps}, optimisers=1, idle={0: steps})
        elif self._moved:
            yield Pending(steps, (), optimisers=1)
