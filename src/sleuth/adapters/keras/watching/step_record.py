"""What one step of a training leaves behind, and the observations that are made of it off the training thread."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth import kernel
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.activity import activity
from sleuth.adapters.keras.loss_calls import heard_calls
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.listening.alarms import not_finite_gradient
from sleuth.adapters.listening.calls import NOTHING_HEARD, Heard
from sleuth.adapters.listening.steps import build_step, not_finite_loss
from sleuth.core.location import Location
from sleuth.core.observation import Absent, Frame, LossCall, Observation, Precision, Predictions, Role, Split
from sleuth.core.runtime.tree import leaves

GATHERED = "the optimiser gathers the gradients of several steps before it writes"
# Losses that take one class a sample.
ONE_CLASS = ("cross-entropy", "probabilities", "nll")


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
    look: Look | None = None
    compiled: Location | None = None
    heard: Heard = NOTHING_HEARD
    optimiser: int = 0
    training: bool = True
    scale: float = 1.0  # that an optimiser has put on the loss
    phases: Mapping[str, float] = field(default_factory=dict)  # seconds of parts of the step

    @property
    def bytes(self) -> int:
        return 0 if self.look is None else self.look.bytes

    def observations(self) -> Iterator[Observation]:
        table = None
        if self.look is not None:
            for observation in _looked(self.look, self.step, self.losses, self.compiled):
                if isinstance(observation, Frame) and observation.role is Role.GRADIENT:
                    table = observation.table
                yield observation
        values = numbers(self.losses, self.scale)
        # Of several backwards nobody knows which loss is meant.
        loss = values[0] if len(self.losses) == len(values) == 1 else None
        bad = not_finite_loss(self.step, next((value for value in values if not math.isfinite(value)), None))
        if bad is not None:
            yield bad
        yield build_step(
            self.step,
            loss,
            lr=self.lr,
            gradients=table,
            calls=self.heard.names,
            counts=self.heard.counts,
            optimiser=self.optimiser,
            training=self.training,
            seconds=self.seconds,
            phases=self.phases,
        )


def numbers(losses: Sequence[Any], scale: float) -> list[float]:
    """Waits for the device. What is not one number is left out."""
    arrays = [backend.values(loss) if backend.is_array(loss) else np.asarray(loss) for loss in losses]
    return [float(array.reshape(())) / scale for array in arrays if array.size == 1]


def _looked(look: Look, step: int, losses: Sequence[Any], compiled: Location | None) -> Iterator[Observation]:
    if look.hearing is not None:
        yield from activity(look.hearing.made, step)
        calls: list[LossCall] = list(heard_calls(look.hearing, losses[0] if len(losses) == 1 else None, compiled))
        yield from calls
        yield from _predictions(look.hearing, calls, step)
        yield Precision(step, {m.path: backend.dtype(m.array) for m in look.hearing.made})
    if look.gradients is not None:
        reached = [(path, g) for path, g in zip(look.paths, look.gradients, strict=True) if g is not None]
        if reached:
            table = kernel.measure([backend.values(g) for _, g in reached])
            yield Frame(step, Role.GRADIENT, tuple(path for path, _ in reached), table)
            bad = not_finite_gradient(step, ((path, backend.values(g)) for path, g in reached))
            if bad is not None:
                yield bad
    if look.paths:
        yield Frame(step, Role.WEIGHT, look.paths, kernel.measure(list(look.before)))
    if look.paths and look.moves:
        changes = [after - before for after, before in zip(look.after, look.before, strict=True)]
        yield Frame(step, Role.UPDATE, look.paths, kernel.measure(changes))
    elif look.paths:
        yield Absent(Role.UPDATE, GATHERED)


def _predictions(hearing: Hearing, calls: Sequence[LossCall], step: int) -> Iterator[Predictions]:
    """Which classes the model named, where one loss takes one class a sample: its number, or a row with a one."""
    heard = [one for one in hearing.losses if not isinstance(one.loss, str)]
    if len(heard) != 1 or len(calls) != 1 or calls[0].family not in ONE_CLASS:
        return
    outputs, truths = (
        [backend.values(a) for _, a in leaves(part, backend.is_array)] for part in (heard[0].output, heard[0].truth)
    )
    if len(outputs) != 1 or len(truths) != 1 or outputs[0].ndim != 2:
        return
    output, truth = outputs[0], truths[0]
    if truth.shape == output.shape and output.shape[-1] > 1:
        right = truth.argmax(-1)
    elif truth.size == len(output):
        right = truth.reshape(-1).astype(np.int64)
    else:
        return
    named = output.argmax(-1)
    correct = int((named == right).sum())
    yield Predictions(step, Split.TRAIN, output.shape[-1], _counted(named), _counted(right), correct, calls[0].location)


def _counted(classes: np.ndarray) -> dict[int, int]:
    return dict(Counter(classes.tolist()))
