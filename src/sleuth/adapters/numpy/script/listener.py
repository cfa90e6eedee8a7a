"""One training of a script: its updates make steps, and what was told between them is their loss."""

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.listener import Listener
from sleuth.adapters.listening.pace import Pace, Stopwatch
from sleuth.adapters.numpy.script.losses import LossChoice
from sleuth.adapters.numpy.script.network import HeardNetwork
from sleuth.adapters.numpy.script.operands import measured
from sleuth.adapters.numpy.script.slots import Event
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Call, Evaluation, Observation, Split
from sleuth.core.observation.calls import CallKind

# A part of the loop that tells many losses and never steps must not fill the memory.
MOST_TOLD = 4096


class LookedStep(NamedTuple):
    step: int
    loss: float | None
    lr: float | None
    seconds: float
    before: dict[str, np.ndarray]
    after: dict[str, np.ndarray]
    gradients: dict[str, np.ndarray]


class PassedStep(NamedTuple):
    step: int
    loss: float | None
    lr: float | None
    seconds: float


class ScriptListener(Listener):
    def __init__(
        self,
        network: HeardNetwork,
        put: Callable[[Any, int], None],
        say: Callable[[Observation], None],
        *,
        pace: Pace,
        guard: Guard,
    ) -> None:
        super().__init__()
        self.network, self._put, self._say = network, put, say
        self.pace, self.alarms = pace, Alarms(guard)
        self.names = {id(slot): slot.name for slot in network.slots}
        self.losses: LossChoice = network.losses
        self.told: list[tuple[int, Any]] = []
        self.rate: float | None = None
        self._events: dict[str, Event] = {}
        self._stopwatch, self._memory = Stopwatch(), ProcessMemory()

    def update(self, event: Event) -> bool:
        """Is the step over with it?"""
        name = self.names.get(id(event.slot))
        if name is None:
            return False
        if name in self._events:  # one of the others was left out this time
            self._end_looked()
        self._events[name] = event
        if len(self._events) < len(self.names):
            return False
        self._end_looked()
        return True

    def _end_looked(self) -> None:
        events, self._events = self._events, {}
        ordered = {slot.name: events[slot.name] for slot in self.network.slots if slot.name in events}
        found = {name: measured(event) for name, event in ordered.items()}
        gradients = {name: gradient for name, (gradient, _) in found.items() if gradient is not None}
        rates = [rate for _, rate in found.values() if rate is not None]
        self.rate = median(rates) if rates else self.rate
        before = {name: event.before for name, event in ordered.items()}
        after = {name: event.after for name, event in ordered.items()}
        if self.steps == 0:
            self._say(Call(CallKind.STEP, 0, self.network.line_of(self.network.slots[-1].name)))
        loss, seconds = self._ended(gradients, looked=True)
        size = sum(a.nbytes for group in (before, after, gradients) for a in group.values())
        self._put(LookedStep(self.steps, loss, self.rate, seconds, before, after, gradients), size)
        self.looks += 1
        self.network.values = {**self.network.values, **after}
        self.steps += 1

    def pass_step(self) -> None:
        """Of a step that was only counted."""
        loss, seconds = self._ended({}, looked=False)
        self._put(PassedStep(self.steps, loss, self.rate, seconds), 0)
        self.steps += 1

    def _ended(self, gradients: dict[str, np.ndarray], *, looked: bool) -> tuple[float | None, float]:
        told, self.told = self.told, []
        loss = self.losses.of_step(told)
        if told and (asked := self.losses.of_validation(told)) is not None:
            self._say(Evaluation(self.steps, Split.VALIDATION, {"loss": asked}, logged=True))
        if looked or (loss is not None and loss - loss != 0.0):
            self.alarms.before_step(self.steps, loss, gradients.items())
        memory = self._memory.after_step(self.steps, 0)
        if memory is not None:
            self._say(memory)
        seconds, own = self._stopwatch.step_ended(self.measured_seconds)
        self.pace.step_ended(self.steps, seconds, looked=looked, own_seconds=own, heard=False if looked else self.steps < 256)
        return loss, seconds

    def looks_next(self) -> bool:
        return self.pace.looks_at(self.steps) or self.alarms.guard.every_gradient

    def finish(self) -> None:
        if self._events and len(self._events) * 2 > len(self.names):
            self._end_looked()

    def let_go(self) -> None:
        self._memory.close()
