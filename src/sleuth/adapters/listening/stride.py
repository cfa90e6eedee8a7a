"""How many steps lie between two that cost something extra, so that the whole stays within a share of the time."""

import math
from statistics import median


class Stride:
    """So many steps lie between two that cost something extra. It only widens."""

    def __init__(self, share: float, patience: int = 1) -> None:
        self._share = share
        self._patience = patience  # a short run has some too: the next one waits at most for this part of the steps so far
        self._costs: list[float] = []
        self.steps = 0  # 0: not known yet
        self.next = 0

    def paid(self, seconds: float) -> None:
        self._costs = [*self._costs[-6:], seconds]

    @property
    def cost(self) -> float | None:
        return median(self._costs) if self._costs else None

    def calibrate(self, step: int, step_seconds: float) -> None:
        wanted = math.ceil((self.cost or 0.0) / max(self._share * step_seconds, 1e-9))
        self.steps = max(self.steps, wanted, 1)
        self.next = step + min(self.steps, max(1, step // self._patience))

    def is_due(self, step: int) -> bool:
        return self.steps > 0 and step >= self.next
