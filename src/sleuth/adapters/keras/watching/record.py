"""What one step of a training leaves behind, and what that says."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.activity import activity
from sleuth.adapters.keras.hearing import Hearing
from sleuth.adapters.keras.loss_calls import heard_calls
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Frame, LossCall, NotFinite, Observation, Role, Step
from sleuth.core.statistics import norm_of


@dataclass(frozen=True)
class Look:
    """A step seen in full. Arrays are copies; gradients are None where the loss does not reach a weight."""

    paths: tuple[str, ...]
    before: Sequence[np.ndarray]
    after: Sequence[np.ndarray]
    gradients: Sequence[Any] | None
    hearing: Hearing | None  # of the forward pass and loss
    moves: bool = True  # False: the optimiser gathers gradients first and writes at some steps only

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in (*self.before, *self.after)) * 2


@dataclass(frozen=True)
class Record:
    step: int
    losses: Sequence[Any]  # of the backwards of this step, still on their device
    lr: float | None
    seconds: float
    look: Look | None
    compiled: Location | None = None

    def observations(self) -> Iterator[Observation]:
        norm = None
        if self.look is not None:
            for observation in _looked(self.look, self.step, self.losses, self.compiled):
                if isinstance(observation, Frame) and observation.role is Role.GRADIENT:
                    norm = norm_of(observation.table)
                yield observation
        value = number(self.losses)
        if value is not None and not math.isfinite(value):
            nans = int(math.isnan(value))
            yield NotFinite(self.step, "loss", nans=nans, infs=1 - nans)
        finite = value if value is not None and math.isfinite(value) else None
        seconds = {"step": self.seconds}
        yield Step(self.step, finite, self.lr, gradient_norm=norm, seconds=seconds, heard=value is not None)


def number(losses: Sequence[Any]) -> float | None:
    """The loss of a step with one backward; of several nobody knows which is meant."""
    if len(losses) != 1:
        return None
    values = backend.values(losses[0]) if backend.is_array(losses[0]) else np.asarray(losses[0])
    return float(values.reshape(())) if values.size == 1 else None


def _looked(look: Look, step: int, losses: Sequence[Any], compiled: Location | None) -> Iterator[Observation]:
    if look.hearing is not None:
        yield from activity(look.hearing.made, step)
        calls: list[LossCall] = list(heard_calls(look.hearing, losses[0] if len(losses) == 1 else None, compiled))
        yield from calls
    if look.gradients is not None:
        reached = [(path, g) for path, g in zip(look.paths, look.gradients, strict=True) if g is not None]
        if reached:
            table = kernel.measure([backend.values(g) for _, g in reached])
            yield Frame(step, Role.GRADIENT, tuple(path for path, _ in reached), table)
    if look.paths:
        yield Frame(step, Role.WEIGHT, look.paths, kernel.measure(list(look.before)))
    if look.paths and look.moves:
        changes = [after - before for after, before in zip(look.after, look.before, strict=True)]
        yield Frame(step, Role.UPDATE, look.paths, kernel.measure(changes))
    elif look.paths:
        yield Absent(Role.UPDATE, "the optimiser gathers the gradients of several steps before it writes")
