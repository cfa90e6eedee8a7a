"""What one step leaves behind."""

from typing import Any, NamedTuple

from sleuth.core.observation import Observation
from sleuth.core.subject import Parts


class Record(NamedTuple):
    step: int
    optimiser: int
    losses: tuple[Any, ...]  # until they are read
    lr: float | None
    calls: tuple[str, ...]
    counts: dict[str, int]
    seconds: float
    notes: tuple[Observation, ...] = ()
    training: bool = True
    state: str = "new"  # of the losses: computed, held (until a look has them computed), gone
    batches: tuple[tuple[int, Parts], ...] = ()  # in the host's memory, whose facts are to be told
    value: float | None = None  # NaN and Inf as they are
