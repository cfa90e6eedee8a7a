"""What one step leaves behind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from sleuth.adapters.listening.calls import NOTHING_HEARD, Heard
from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.listening.steps import NOTHING, mean_loss
from sleuth.adapters.torch.watching.call_places import Place
from sleuth.adapters.torch.watching.weights import Measured
from sleuth.core.observation import Role

# Steps that a scene shows before its own.
RECENT = 16


@dataclass
class Look:
    """A step seen in full. Rows as in core.statistics."""

    tables: dict[Role, Measured] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(table.nbytes for _, table, _ in self.tables.values())


class Record(NamedTuple):
    """Turned into observations off the training thread. One a step: it is made quickly. What follows `notes` is known of a step
    that was listened to in full."""

    step: int
    optimiser: int
    loss: float | torch.Tensor | None  # a tensor: still on a device
    lr: float | None
    seconds: float
    training: bool
    look: Look | None = None
    notes: tuple[Note, ...] = ()
    heard: Heard = NOTHING_HEARD
    places: tuple[Place, ...] = ()
    unusual: bool = False
    phases: Mapping[str, float] = NOTHING  # seconds


def rate_of(optimiser: Any) -> float | None:
    lr = optimiser.param_groups[0].get("lr")
    return lr if lr is None or type(lr) is float else float(lr)


def mean_of(losses: list[float | torch.Tensor]) -> float | torch.Tensor | None:
    """Nobody waits for a device here."""
    if len(losses) < 2:
        return losses[0] if losses else None
    if all(isinstance(loss, float) for loss in losses):
        return mean_loss(losses)  # type: ignore[arg-type]
    return torch.stack([torch.as_tensor(loss) for loss in losses]).float().mean()


def as_plain_values(records: Iterable[Record]) -> list[dict[str, Any]]:
    """For a scene: NaN and Inf as text."""
    return [
        {
            "step": record.step,
            "optimiser": record.optimiser,
            "loss": _as_text(record.loss),
            "lr": _as_text(record.lr),
            "calls": [str(kind) for kind in record.heard.names],
            "seconds": record.seconds,
        }
        for record in records
    ]


def _as_text(number: Any) -> str | None:
    return None if number is None else repr(float(number))
