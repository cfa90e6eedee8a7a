"""Hears a loop that the user wrote by hand around arrays that change."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calls import LoopCalls, phases
from sleuth.adapters.common.manual_loop.data_passes import DataPasses
from sleuth.adapters.common.manual_loop.gradient_sums import GradientSums
from sleuth.adapters.common.manual_loop.loop_functions import LoopFunctions
from sleuth.adapters.common.manual_loop.loop_scope import loop_frame, users_line
from sleuth.adapters.common.manual_loop.loop_variables import Variables
from sleuth.adapters.common.manual_loop.loss_and_predictions import judged
from sleuth.adapters.common.manual_loop.notes import Notes, TakenStep, number_in
from sleuth.adapters.common.manual_loop.patches import Args, Function, Options
from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.listener import Listener, contained
from sleuth.adapters.listening.pace import Pace, Stopwatch
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Call, Observation, Pending
from sleuth.core.observation.calls import CallKind

Put = Callable[[Any, int], None]
Say = Callable[[Observation], None]
Weights = Callable[[], Mapping[str, np.ndarray]]


class ManualLoopListener(Listener):
    """A framework's listener tells it of losses and backwards, and when weights are about to be written or were."""

    loop_functions: LoopFunctions  # patched by the watch

    def __init__(self, put: Put, say: Say, *, pace: Pace, guard: Guard) -> None:
        super().__init__()
        self._put, self._say = put, say
        self.pace, self.alarms = pace, Alarms(guard)
        self.calls, self.passes = LoopCalls(), DataPasses()
        self._variables, self._memory, self._stopwatch = Variables(), ProcessMemory(), Stopwatch()
        self._met: set[CallKind] = set()
        self._sums = GradientSums()
        self._divided: float | None = None  # see gradient_sums
        self._used = False  # the gradients of an earlier step are still there
        self.usual: Mapping[str, int] = {}  # what the last step called that was heard from its beginning
        self.backwards = 0
        self.fell: str | None = None  # in which function an exception came up
        self.notes = Notes(looked=True)

    def speak_up(self) -> None:
        self.alarms.speak_up()

    def say(self, observation: Observation | None) -> None:
        if observation is not None:
            self._say(observation)

    def meet(self, kind: CallKind) -> None:
        """The line of the loop that does this, told once."""
        if kind not in self._met:
            self._met.add(kind)
            self.say(Call(kind, self.steps, users_line()))

    @contained
    def loss_said(self, number: int, function: Function, args: Args, options: Options, returned: Any) -> None:
        """A function that is called like a loss, of that number, was given this and returned that."""
        self.note_loss(number, function, args, options, returned)

    def note_loss(self, number: int, function: Function, args: Args, options: Options, returned: Any) -> None:
        several = isinstance(returned, tuple) and len(returned) > 0
        value = number_in(self.plain(returned[0] if several else returned))
        if value is not None:
            self.notes.add_loss(number, value)
        if self.notes.looked and number >= 0:
            rest = self.plain(returned[1]) if several and len(returned) > 1 else None
            is_method = "self" in function.__code__.co_varnames[:1]
            name = getattr(args[0], "__name__", type(args[0]).__name__) if is_method and args else function.__name__
            found = judged(function, name, tuple(map(self.plain, args)), options, (value, rest), users_line())
            self.notes.heard += [] if found is None else [found]

    def plain(self, thing: Any) -> Any:
        """Arrays of a framework as NumPy's; anything else as it is."""
        return thing

    def note_backward(self, scale: float | None) -> None:
        """`scale`: what it was given, of what the loss said."""
        self.meet(CallKind.BACKWARD)
        self.notes.scales.append(scale)
        self.calls.backward()
        self.notes.backward()
        self.backwards += 1

    def sum_up(self, gradients: Mapping[str, np.ndarray | None], *, added: bool) -> None:
        """What the step is given, against what the backwards since the last one gave."""
        again, self._divided = self._sums.step(gradients, added=added)
        self._used |= again

    def before_write(self, loss: float | None) -> None:
        """What the user wants done happens before weights are written."""
        self.notes.is_checked = True
        self.alarms.before_step(self.steps, loss, self.notes.gradients.items())

    def end_step(self, kind: CallKind, after: Weights, *, lr: float | None, late_loss: Any = None, unusual: bool = False) -> None:
        """`after`: copies of the weights. `late_loss`: an array that is not to be waited for."""
        began, notes = time.perf_counter(), self.notes
        weights = after() if notes.looked else {}
        loss = notes.loss()
        if loss is None and late_loss is None:
            loss = self.loss_in_loop()
        # Where nobody heard the writing come, its values are met now.
        self.alarms.before_step(self.steps, loss, () if notes.is_checked else notes.gradients.items())
        heard = self.calls.take()
        self.usual = self.usual if unusual else heard.counts
        self.say(self._memory.after_step(self.steps, self.passes.count))
        seconds, own = self._stopwatch.step_ended(self.measured_seconds + time.perf_counter() - began)
        late_loss = late_loss if loss is None else None
        training = self.calls.trained_in is not False
        waited = self.passes.waited()
        self._put(
            TakenStep(
                notes, self.steps, kind, loss, lr, weights, seconds, waited, heard, training, self._divided, late_loss, unusual
            ),
            notes.size + sum(array.nbytes for array in weights.values()) if notes.looked else 0,
        )
        self._divided, self._used = None, False
        self.looks += notes.looked
        self.pace.step_ended(self.steps, seconds, looked=notes.looked, own_seconds=own)
        self.steps += 1

    def looks_at(self, step: int) -> bool:
        return self.pace.looks_at(step) or self.alarms.guard.every_gradient

    def loss_in_loop(self) -> float | None:
        frame = loop_frame()
        return None if frame is None else self._variables.loss(frame)

    def rate_in_loop(self) -> float | None:
        frame = loop_frame()
        return None if frame is None else self._variables.rate(frame)

    @contained
    def finish(self) -> None:
        """The watch ends: what came after the last step is told."""
        self.end_last_step()
        self.calls.settle()
        heard = self.calls.take()
        idle = {0: self.backwards} if not self.steps and self.backwards else {}
        for phase in phases(heard, self.steps, last=True):
            self.say(phase)
        counts = {str(kind): count for kind, count in heard.counts.items()}
        self.say(Pending(self.steps, heard.names, counts, 1, idle))

    def end_last_step(self) -> None:
        """A loop that changes the weights itself has no next forward to end its last step."""

    def let_go(self) -> None:
        self._memory.close()
