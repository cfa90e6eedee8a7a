"""What one step of a training leaves behind, and what that says."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.activity import activity
from sleuth.adapters.keras.loss_calls import heard_calls
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.watching.predictions import predictions
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Frame, LossCall, NotFinite, Observation, Precision, Role, Step
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
    seconds: Mapping[str, float]
    look: Look | None
    compiled: Location | None = None
    calls: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    optimiser: int = 0
    training: bool = True
    scale: float = 1.0  # that an optimiser has put on the loss

    def observations(self) -> Iterator[Observation]:
        norm = None
        if self.look is not None:
            for observation in _looked(self.look, self.step, self.losses, self.compiled):
                if isinstance(observation, Frame) and observation.role is Role.GRADIENT:
                    norm = norm_of(observation.table)
                yield observation
        value = self.value
        if value is not None and not math.isfinite(value):
            nans = int(math.isnan(value))
            yield NotFinite(self.step, "loss", nans=nans, infs=1 - nans)
        finite = value if value is not None and math.isfinite(value) else None
        yield Step(
            self.step,
            finite,
            self.lr,
            gradient_norm=norm,
            calls=self.calls,
            counts=self.counts,
            optimiser=self.optimiser,
            training=self.training,
            seconds=self.seconds,
            heard=value is not None,
        )

    @property
    def value(self) -> float | None:
        found = number(self.losses)
        return None if found is None else found / self.scale


def number(losses: Sequence[Any]) -> float | None:
    """The loss of a step with one backward; of several nobody knows which is meant."""
    if len(losses) != 1:
        return None
    values = backend.values(losses[0]) if backend.is_array(losses[0]) else np.asarray(losses[0])
    return float(values.reshape(())) if values.size == 1 else None


def _not_finite(gradients: Sequence[tuple[str, Any]], step: int) -> Iterator[NotFinite]:
    for path, gradient in gradients:
        array = backend.values(gradient)
        if not np.isfinite(array).all():
            yield NotFinite(step, "gradient", path, int(np.isnan(array).sum()), int(np.isinf(array).sum()))
            return


def _looked(look: Look, step: int, losses: Sequence[Any], compiled: Location | None) -> Iterator[Observation]:
    if look.hearing is not None:
        yield from activity(look.hearing.made, step)
        calls: list[LossCall] = list(heard_calls(look.hearing, losses[0] if len(losses) == 1 else None, compiled))
        yield from calls
        yield from predictions(look.hearing, calls, step)
        yield Precision(step, {m.path: backend.dtype(m.array) for m in look.hearing.made})
    if look.gradients is not None:
        reached = [(path, g) for path, g in zip(look.paths, look.gradients, strict=True) if g is not None]
        if reached:
            table = kernel.measure([backend.values(g) for _, g in reached])
            yield Frame(step, Role.GRADIENT, tuple(path for path, _ in reached), table)
            yield from _not_finite(reached, step)
    if look.paths:
        yield Frame(step, Role.WEIGHT, look.paths, kernel.measure(list(look.before)))
    if look.paths and look.moves:
        changes = [after - before for after, before in zip(look.after, look.before, strict=True)]
        yield Frame(step, Role.UPDATE, look.paths, kernel.measure(changes))
    elif look.paths:
        yield Absent(Role.UPDATE, "the optimiser gathers the gradients of several steps before it writes")
