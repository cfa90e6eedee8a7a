"""What one step leaves behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from sleuth.adapters.torch.watching.ear import Note
from sleuth.adapters.torch.watching.stopwatch import NOTHING
from sleuth.adapters.torch.watching.weights import SAMPLED, Measured
from sleuth.core.location import Location
from sleuth.core.observation import Role


@dataclass
class Look:
    """A step seen in full. Rows as in core.statistics."""

    tables: dict[Role, Measured] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(table.nbytes for _, table, _ in self.tables.values())


class Record(NamedTuple):
    """What one step leaves behind; turned into observations off the training thread. One a step: it is made quickly."""

    step: int
    optimiser: int
    loss: float | torch.Tensor | None  # a tensor: still on a device
    lr: float | None
    calls: tuple[str, ...]
    places: tuple[tuple[str, Location | None, Location | None], ...]
    seconds: float
    look: Look | None
    counts: Mapping[str, int]
    notes: tuple[Note, ...] = ()
    training: bool = True
    unusual: bool = False
    sampled: int = SAMPLED
    phases: Mapping[str, float] = NOTHING  # seconds, of a step that was listened to


def as_text(number: Any) -> str | None:
    return None if number is None else repr(float(number))


def mean_of(losses: list[float | torch.Tensor]) -> float | torch.Tensor | None:
    if len(losses) < 2:
        return losses[0] if losses else None
    if all(isinstance(loss, float) for loss in losses):
        return sum(losses) / len(losses)
    return torch.stack([torch.as_tensor(loss) for loss in losses]).float().mean()
