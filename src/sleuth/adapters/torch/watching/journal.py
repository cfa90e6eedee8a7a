"""What the steps leave behind: one record each, and the last of them at hand."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from sleuth.adapters.torch.watching.calls import NOTHING_HEARD, Heard
from sleuth.adapters.torch.watching.ear import Note
from sleuth.adapters.torch.watching.optimisers import Held
from sleuth.adapters.torch.watching.record import Look, Record, as_text, mean_of
from sleuth.adapters.torch.watching.stopwatch import NOTHING
from sleuth.core.location import Location

# Steps that a scene shows in full before its own.
RECENT = 16


class Ended(NamedTuple):
    """One that has just ended. What follows `notes` is known of a step that was listened to."""

    number: int
    held: Held
    optimiser: Optimizer
    losses: list[float | torch.Tensor]
    training: bool
    look: Look | None = None
    notes: tuple[Note, ...] = ()
    heard: Heard = NOTHING_HEARD
    places: tuple[tuple[str, Location | None, Location | None], ...] = ()
    unusual: bool = False
    phases: Mapping[str, float] = NOTHING


class Journal:
    def __init__(self, put: Callable[[Record], None]) -> None:
        self._put = put
        self._recent: deque[Record] = deque(maxlen=RECENT)
        self._began = time.perf_counter()

    def write(self, step: Ended) -> float:
        """Seconds since the step before."""
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        lr = step.optimiser.param_groups[0].get("lr")
        record = Record(
            step.number,
            step.held.number,
            mean_of(step.losses),
            lr if lr is None or type(lr) is float else float(lr),
            step.heard.names,
            step.places,
            seconds,
            step.look,
            step.heard.counts,
            step.notes,
            step.training,
            step.unusual,
            phases=step.phases,
        )
        self._recent.append(record)
        self._put(record)
        return seconds

    def recent_steps(self) -> list[dict[str, Any]]:
        """The last steps, oldest first, as plain values; NaN and Inf as text."""
        return [
            {
                "step": record.step,
                "optimiser": record.optimiser,
                "loss": as_text(record.loss),
                "lr": as_text(record.lr),
                "calls": list(record.calls),
                "seconds": record.seconds,
            }
            for record in self._recent
        ]

    def clear(self) -> None:
        self._recent.clear()
