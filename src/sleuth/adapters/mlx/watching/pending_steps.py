"""Steps that wait for their losses. A loss is read when the user has had it computed; one that nobody computes is held for a
while, in little memory, until a look has it computed, or let go."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

from sleuth.adapters.listening.calls import Heard
from sleuth.adapters.listening.steps import mean_loss
from sleuth.adapters.mlx.arrays import drawn, evaluated
from sleuth.adapters.mlx.watching.look_copy import LookCopy
from sleuth.core.observation import Absent, NotFinite, Observation
from sleuth.core.subject import Parts

# A loss that is computed in the background is waited for only so many steps later.
LAG = 4
# Asking whether a loss is computed costs more where it is not: then it is asked ever more seldom.
MOST_PATIENCE = 256
MOST_HELD = 64
MOST_BYTES = 16 << 20
# Characters of the drawing: a loss function and no more.
SMALL_GRAPH = 6000
UNREAD = "losses that the loop leaves uncomputed are not read at every step: reading one would compute the whole step"


class LossState(Enum):
    NEW = 0  # nobody knows yet
    COMPUTED = 1
    HELD = 2  # until a look has it computed
    GONE = 3


class Record(NamedTuple):
    """What one step leaves behind. When its losses are read it holds no array of MLX's: another thread may take it."""

    step: int
    optimiser: int
    losses: tuple[Any, ...]  # until they are read
    lr: float | None
    calls: Heard
    seconds: float
    notes: tuple[Observation, ...] = ()
    look: LookCopy | None = None
    training: bool = True
    state: LossState = LossState.NEW
    batches: tuple[tuple[int, Parts], ...] = ()  # in the host's memory, whose facts are to be told
    value: float | None = None  # NaN and Inf as they are

    @property
    def bytes(self) -> int:
        return 0 if self.look is None else self.look.bytes


class PendingSteps:
    def __init__(self, put: Callable[[Record], None], not_finite: Callable[[int, float], Iterable[Observation]]) -> None:
        """`not_finite`: what is to be said of a step whose loss turns out to be NaN or Inf."""
        self._put, self._not_finite = put, not_finite
        self._records: deque[Record] = deque()
        self._patience = _Patience()
        self._told_unread = False

    def add(self, record: Record) -> None:
        self._records.append(record)

    def learn(self, loss_bytes: int) -> None:
        self._patience.learn(loss_bytes)

    def held_losses(self) -> Iterator[Any]:
        return (loss for record in self._records if record.state is LossState.HELD for loss in record.losses)

    def decide_last(self) -> None:
        """Before the next step the user still holds the loss of the last, computed or not."""
        if not self._records or self._records[-1].state is not LossState.NEW:
            return
        last = self._records[-1]
        state = self._patience.state_of(last.losses) if last.losses else LossState.GONE
        notes = last.notes
        if last.losses and state is LossState.GONE and not self._told_unread:
            self._told_unread, notes = True, (*notes, Absent(NotFinite, UNREAD))
        losses = () if state is LossState.GONE else last.losses
        self._records[-1] = last._replace(state=state, losses=losses, notes=notes)

    def computed(self) -> None:
        """What was held has its values now."""
        for i, record in enumerate(self._records):
            if record.state is LossState.HELD:
                self._records[i] = record._replace(state=LossState.COMPUTED)
        self._patience.held = 0

    def hand_on(self, lag: int) -> None:
        """What is old enough; a loss that is held keeps those behind it waiting."""
        while len(self._records) > lag and self._records[0].state is not LossState.HELD:
            record = self._records.popleft()
            is_known = record.state is LossState.COMPUTED
            value = mean_loss(float(loss.item()) for loss in record.losses) if is_known else None
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
        gone = [r._replace(state=LossState.GONE, losses=()) if r.state is LossState.HELD else r for r in self._records]
        self._records = deque(gone)
        self.hand_on(0)


class _Patience:
    """With a loop that leaves its losses uncomputed."""

    def __init__(self) -> None:
        self._skip = 0
        self._patience = 1
        self.room = 0  # so many may be held
        self.held = 0

    def learn(self, size: int) -> None:
        """`size`: bytes of what a loss is made of."""
        self.room = min(MOST_HELD, MOST_BYTES // max(size, 1))

    def state_of(self, losses: tuple[Any, ...]) -> LossState:
        if self._skip > 0:
            self._skip -= 1
            return LossState.GONE
        pictures = [drawn(loss) for loss in losses]
        if not any("->" in picture for picture in pictures):
            self._patience = 1
            return LossState.COMPUTED
        if max(map(len, pictures)) <= SMALL_GRAPH:
            self.held += self.held < self.room
            return LossState.HELD if self.held <= self.room and self.room else LossState.GONE
        # The whole step is uncomputed: to draw it takes time, and to hold it memory.
        self._skip, self._patience = self._patience, min(2 * self._patience, MOST_PATIENCE)
        return LossState.GONE
