"""A watch of a loop of the user's own: the listener, and what its records become."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from abacus import Array, Module, Optimiser

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.calls import Calls, Heard
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.pace import Pace, Shares, Stopwatch
from sleuth.adapters.listening.recorder import Note, Recorder, Recorders, observations_of
from sleuth.adapters.listening.steps import build_step, mean_loss
from sleuth.adapters.listening.watching import ListeningWatch
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Absent, CallKind, LossCall, Observation, Pending, Role
from sleuth_abacus.looks import frames
from sleuth_abacus.patches import PATCHES, Events

Arrays = Mapping[str, np.ndarray]
NO_ARRAYS: Arrays = MappingProxyType({})


class Record(NamedTuple):
    """What a step left behind: plain numbers, and copies of arrays where it was looked at."""

    step: int
    loss: float | None
    lr: float
    calls: Heard
    seconds: float
    notes: tuple[Note, ...]
    gradients: Arrays = NO_ARRAYS
    before: Arrays = NO_ARRAYS
    after: Arrays = NO_ARRAYS


class AbacusListener(Events):
    def __init__(self, model: Module, put: Callable[[Record, int], None], pace: Pace, guard: Guard) -> None:
        super().__init__()
        self.model, self._put, self._pace = model, put, pace
        self.alarms = Alarms(guard)
        self.recorders = Recorders([MemoryRecorder(self)], failed=self.remarks)
        self.calls, self._stopwatch = Calls(), Stopwatch()
        self._losses: list[float] = []
        self._used = False  # the gradients that are there were used by a step already
        self._kind = CallKind.STEP
        self._gradients: Arrays = {}
        self._before: Arrays = {}

    @contained
    def forward(self, module: Module) -> None:
        if module is self.model:
            self.calls.say(CallKind.FORWARD if module.training else CallKind.FORWARD_IN_EVAL)

    @contained
    def backward(self, loss: Array) -> None:
        self._losses.append(loss.item())
        self.calls.say(CallKind.BACKWARD)

    @contained
    def cleared(self, optimiser: Optimiser) -> None:
        self._used = False
        self.calls.say(CallKind.ZERO_GRAD)

    @contained
    def before_step(self, optimiser: Optimiser) -> None:
        if not self.calls.count(CallKind.BACKWARD):
            self._kind = CallKind.STEP_ON_SAME_GRADIENT if self._used else CallKind.STEP_WITHOUT_GRADIENT
        else:
            self._kind = CallKind.STEP_ON_USED_GRADIENT if self._used else CallKind.STEP
        looked = self._pace.looks_at(self.steps)
        if looked or self.alarms.every_step:
            held = self.model.parameters()
            self._gradients = {path: array.grad.copy() for path, array in held.items() if array.grad is not None}
            self._before = {path: array.data.copy() for path, array in held.items()} if looked else {}
        self.alarms.before_step(self.steps, mean_loss(self._losses), self._gradients.items())

    @contained
    def after_step(self, optimiser: Optimiser) -> None:
        looked = bool(self._before)
        after = {path: array.data.copy() for path, array in self.model.parameters().items()} if looked else {}
        self.recorders.tell("after_step", 0)
        self.calls.say(self._kind)
        seconds, own = self._stopwatch.step_ended(self.own_seconds)
        kept = (self._gradients, self._before, after) if looked else ()
        notes = self.recorders.take()
        record = Record(self.steps, mean_loss(self._losses), optimiser.lr, self.calls.take(0), seconds, notes, *kept)
        self._put(record, sum(array.nbytes for arrays in kept for array in arrays.values()))
        self._pace.step_ended(self.steps, seconds, looked=looked, own_seconds=own)
        self.looks += looked
        self.steps += 1
        self._losses, self._gradients, self._before, self._used = [], {}, {}, True

    def speak_up(self) -> None:
        self.alarms.speak_up()


class MemoryRecorder(Recorder):
    """How much memory the process holds."""

    def __init__(self, listener: AbacusListener) -> None:
        self._listener, self._memory = listener, ProcessMemory()
        self._notes: list[Observation] = []

    def after_step(self, number: int) -> None:
        found = self._memory.after_step(self._listener.steps)
        self._notes += [] if found is None else [found]

    def take(self) -> list[Observation]:
        notes, self._notes = self._notes, []
        return notes


class AbacusWatching(ListeningWatch):
    def __init__(self, model: Module, *, every: int | None, overhead: float, guard: Guard | None) -> None:
        pace = Pace(every=every, overhead=overhead, shares=Shares())
        self._heard = AbacusListener(model, self.put, pace, guard or Guard())
        super().__init__(self._heard)

    def open(self) -> None:
        self.say(*(Absent(what, "a watch of Abacus hears the model as a whole") for what in (Role.ACTIVATION, LossCall)))
        PATCHES.add(self._heard)

    def close(self) -> None:
        PATCHES.remove(self._heard)
        left = self._heard.calls.take(0)
        self.say(Pending(self.steps, left.names, left.counts, 1))

    def explain(self, error: BaseException) -> list[Observation]:
        return []  # the exception and its line are said by themselves

    def to_observations(self, record: Record) -> Iterable[Observation]:
        moved = {path: values - record.before[path] for path, values in record.after.items()}
        tables = frames(record.step, {Role.GRADIENT: record.gradients, Role.WEIGHT: record.after, Role.UPDATE: moved})
        yield from tables.values()
        yield from observations_of(record.notes)
        calls = record.calls
        yield from calls.phases(record.step)
        gradients: Any = tables[Role.GRADIENT].table if Role.GRADIENT in tables else None
        yield build_step(
            record.step,
            record.loss,
            lr=record.lr,
            gradients=gradients,
            calls=calls.names,
            counts=calls.counts,
            seconds=record.seconds,
        )
