"""Records of steps, waiting for their losses. A loss that nobody computes is held for a while, or let go."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sleuth.adapters.mlx.arrays import evaluated
from sleuth.adapters.mlx.watching.losses import Patience, number_of
from sleuth.adapters.mlx.watching.record import Record
from sleuth.core.observation import Observation


class Waiting:
    def __init__(self, put: Callable[[Record], None], not_finite: Callable[[int, float], Iterable[Observation]]) -> None:
        """`not_finite`: what is to be said of a step whose loss turns out to be NaN or Inf."""
        self._put, self._not_finite = put, not_finite
        self._records: deque[Record] = deque()
        self._patience = Patience()

    def add(self, record: Record) -> None:
        self._records.append(record)

    def learn(self, loss_bytes: int) -> None:
        self._patience.learn(loss_bytes)

    def held_losses(self) -> Iterator[Any]:
        return (loss for record in self._records if record.state == "held" for loss in record.losses)

    def decide_last(self) -> None:
        """Before the next step the user still holds the loss of the last, computed or not."""
        if self._records and self._records[-1].state == "new":
            last = self._records[-1]
            state = self._patience.fate(last.losses) if last.losses else "gone"
            self._records[-1] = last._replace(state=state, losses=() if state == "gone" else last.losses)

    def computed(self) -> None:
        """What was held has its values now."""
        for i, record in enumerate(self._records):
            if record.state == "held":
                self._records[i] = record._replace(state="computed")
        self._patience.held = 0

    def hand_on(self, lag: int) -> None:
        """What is old enough; a loss that is held keeps those behind it waiting."""
        while len(self._records) > lag and self._records[0].state != "held":
            record = self._records.popleft()
            value = number_of(record.losses) if record.state == "computed" and record.losses else None
            notes = record.notes
            if value is not None and not math.isfinite(value):
                notes = (*notes, *self._not_finite(record.step, value))
            self._put(record._replace(losses=(), value=value, notes=notes))

    def close(self) -> None:
        """The loop is over: what is still held is computed now."""
        self.decide_last()
        held = list(self.held_losses())
        if held and all(evaluated(held)):
            self.computed()
        self._records = deque(r._replace(state="gone", losses=()) if r.state == "held" else r for r in self._records)
        self.hand_on(0)
