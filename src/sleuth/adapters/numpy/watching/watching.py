"""A watch of a loop around a hand-written network: its methods are heard on their classes, its functions in their modules."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.alarms import Alarms
from sleuth.adapters.common.manual_loop.crash import Network, explain_crash
from sleuth.adapters.common.manual_loop.learning_rate import find_rate
from sleuth.adapters.common.manual_loop.patches import Taps
from sleuth.adapters.common.manual_loop.process_memory import ProcessMemory
from sleuth.adapters.common.manual_loop.step import Notes, Taken, observations
from sleuth.adapters.listening.stride import Stride
from sleuth.adapters.numpy.activity import activity
from sleuth.adapters.numpy.failure import layer_of
from sleuth.adapters.numpy.forms import understood
from sleuth.adapters.numpy.model_parts import Parameters
from sleuth.adapters.numpy.pass_listener import Listener
from sleuth.adapters.numpy.watching.events import Events
from sleuth.adapters.numpy.watching.heard_functions import Hearing
from sleuth.adapters.numpy.watching.light_listener import Dozed, LightListener, half_heard
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Observation, Pending, Precision
from sleuth.core.subject import Subject

# Steps that may wait to be drained.
MOST_WAITING = 4096
# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# Steps whose time is taken before the first look that is paced by it.
TIMED = 12
SHARE_FOR_LOOKING = 0.3
# What a look costs in all, of what it costs to copy: the other thread measures the copies, and Python lets one run at a time.
MEASURING = 3.0
PATIENCE = 6
# How a loop is written shows in its first steps, which are heard in full; later ones now and then.
FIRST_HEARD = 64
SHARE_FOR_LISTENING = 0.2
HEARD_PATIENCE = 16
# Where the user says which steps are looked at, nothing depends on the time.
ASKED_STRIDE = 8
# What it costs to listen to a step by half, of what it costs in full (benchmarks/watch_numpy.py).
DOZING = 0.1

NO_STEP = "no step was heard: the loop calls none of forward, backward and update of what was given"


class NumpyWatching(Watching):
    def __init__(
        self, model: Any, optimisers: Sequence[Any], *, every: int | None, overhead: float, guard: Guard | None = None
    ) -> None:
        self._optimiser = optimisers[0] if optimisers else None
        self.model = understood(Subject(model, None, optimizer=self._optimiser)).model
        self._every, self._guard = every, guard or Guard()
        self._rate = find_rate(self.model, self._optimiser)
        self._waiting: deque[Taken | Dozed] = deque()
        self._looks_waiting = 0
        self._own_before = 0.0
        self._dozing = LightListener(self)
        self._taps = Taps(self._dozing)
        self._events = Events(self.model, self._optimiser, self)
        self._hearing = Hearing(self.model, self._optimiser, self._events, self._dozing)
        self._memory = ProcessMemory()
        self._said: list[Observation] = []
        self._looked_around = self._crashed = False
        self.divided: float | None = None
        self._pace = Stride(overhead * SHARE_FOR_LOOKING, PATIENCE)
        self._heard_pace = Stride(overhead * SHARE_FOR_LISTENING, HEARD_PATIENCE)
        self._awake_until = FIRST_HEARD
        self._quiet_until = self._dozed = 0
        self._usual: Mapping[str, int] = {}
        self._unusual = False
        self._dozing_seconds = self._step_seconds = 0.0  # a step
        self._times: list[float] = []
        self._ended = time.perf_counter()
        self._prints: list[float] = []
        self._alarms = Alarms(self._guard)
        self.notes = Notes(looked=True)
        self.steps = self.looks = self.dropped = 0
        self.own_seconds = 0.0
        self.trouble: str | None = None
        self.remarks: tuple[str, ...] = ()

    @property
    def waits_for_change(self) -> bool:
        """Nothing is heard that changes the weights: the loop does."""
        return not self._hearing.updates

    @property
    def steps_in_backward(self) -> bool:
        return self._hearing.steps_in_backward

    def open(self) -> None:
        self._hearing.install(self._taps)
        deaf = list(self._hearing.deaf)
        if self._guard.expectations:
            deaf.append("assertions on layers are not looked at in a hand-written network")
        self.remarks = tuple(deaf)

    def first_forward(self) -> None:
        """The loop stands in a scope of its own, which may not have been running when the watch was opened."""
        if not self._looked_around:
            self._looked_around = True
            self._hearing.look_around(self._taps)

    def close(self) -> None:
        try:
            self._guarded(self._left_over)
        finally:
            self._taps.close()
            self._memory.close()
        if not self.steps and not self._events.backwards and self.trouble is None and not self._crashed:
            self.remarks = (*self.remarks, NO_STEP)

    def _left_over(self) -> None:
        order = self._events.order
        if self._dozing.on:
            self._dozing.leave()
        if self.waits_for_change and order.backwards and self._events.weights.prints() != self._prints:
            self.step_ended()
        heard = order.take(self.steps, last=True)
        self._said += heard.phases
        idle = {0: self._events.backwards} if not self.steps and self._events.backwards else {}
        self._said.append(Pending(self.steps, heard.names, heard.counts, 1, idle))

    def say(self, observation: Observation | None) -> None:
        if observation is not None:
            self._said.append(observation)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            taken = self._waiting.popleft()
            if isinstance(taken, Dozed):
                found += half_heard(taken)
                continue
            self._looks_waiting -= taken.notes.looked
            found += observations(taken, self._inside(taken))
        said, self._said = self._said, []
        return found + said

    def _inside(self, taken: Taken) -> Iterator[Observation]:
        """What the layers made."""
        if made := taken.notes.made:
            listener = Listener(self.model)
            listener.made = made
            yield from activity(listener, taken.step)
            yield Precision(taken.step, {m.path: str(m.array.dtype) for m in made})

    def explain(self, error: BaseException) -> list[Observation]:
        self._crashed = True
        if not isinstance(error, Exception):
            return []
        layer = layer_of(error.__traceback__, self.model)
        network = Network(type(self.model).__name__, lambda: Parameters(self.model).arrays(), layer)
        return explain_crash(error, self._events.fell, network, self.steps)

    def heard(self, kind: str, note: Callable[[], None]) -> None:
        """One event of the loop. Nothing of ours may end it, except what the user asked for."""
        if self.trouble is None:
            began = time.perf_counter()
            self._guarded(note)
            self.own_seconds += time.perf_counter() - began
            self._alarms.act()

    def _guarded(self, note: Callable[[], None]) -> None:
        try:
            note()
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"

    def maybe_ended(self) -> None:
        """A loop that changes the weights itself: its step has ended when the next forward begins and they have changed."""
        if self._events.order.backwards and self._events.weights.prints() != self._prints:
            self.step_ended()

    def backward_ended(self, found: dict[str, np.ndarray | None]) -> None:
        self._prints = self._events.weights.prints() if self.waits_for_change else []
        if self.notes.looked:
            self.notes.gradients = {k: np.array(v) for k, v in found.items() if v is not None}
            if not self.steps_in_backward:
                self.weights_kept()

    def weights_kept(self) -> None:
        if self.notes.looked:
            self.notes.before = self._events.weights.copied()

    def about_to_step(self) -> None:
        """What the user wants done happens before weights are written."""
        self._alarms.before_step(self.steps, self.notes.loss(), self.notes.gradients)

    def step_ended(self) -> None:
        notes, now, events = self.notes, time.perf_counter(), self._events
        seconds, self._ended = now - self._ended, now
        full = len(self._waiting) >= MOST_WAITING
        # Nobody drained: the look is given up, which holds copies of all weights, and not the step.
        if notes.looked and self._looks_waiting >= notes.room():
            notes.give_up_look()
        after = events.weights.copied() if notes.looked and not full else {}
        loss = notes.loss()
        if loss is None:
            loss = events.loss_in_loop()
        last = events.step_kind()
        heard = events.order.take(self.steps)
        self.say(self._memory.read(self.steps, events.passes.count))
        if full:
            self.dropped += 1
        else:
            said, self._said = tuple(self._said), []
            times = {"step": seconds, **events.passes.waited()}
            taken = Taken(notes, self.steps, self._rate_now(), after, times, heard, last, loss, self.divided, said, self._unusual)
            self._waiting.append(taken)
            self._looks_waiting += notes.looked
        self.divided = None
        self.looks += notes.looked
        self.steps += 1
        own = self.own_seconds + time.perf_counter() - now
        self._paced(notes.looked, seconds, (own - self._own_before) * MEASURING)
        self._own_before = own
        if not self._unusual:
            self._usual = heard.counts
        self._unusual = False
        self._attend()

    def _attend(self) -> None:
        """How closely is the step that begins now followed?"""
        step, looked = self.steps, self._is_looked_at()
        due = step % ASKED_STRIDE == 0 if self._every is not None else self._heard_pace.is_due(step)
        if due and step >= self._awake_until:
            self._awake_until = step + (2 if self._events.follows else 1)
        if looked or step < self._awake_until or self.trouble is not None:
            if self._dozing.on:
                self._dozing.on = False
                self._wake()
            self.notes = Notes(looked=looked)
            return
        if not self._dozing.on:
            self.notes = Notes(looked=False)
            trained = self._events.order.trained_in is not False
            self._dozing.begin(self._usual, trained, self._events.rate, self._events.optimisers.latest)
            self._dozing_seconds = DOZING * (self._heard_pace.cost or 0.0)
        self._quiet_until = self._next_heard(step)

    def _next_heard(self, step: int) -> int:
        if self._every is not None:
            return min(step - step % n + n for n in (self._every, ASKED_STRIDE))
        return max(step + 1, min(pace.next if pace.steps else step + 1 for pace in (self._pace, self._heard_pace)))

    def _wake(self, backwards: int = 0, *, open_: bool = False) -> None:
        self._events.rate = self._dozing.rate
        self._events.resumed(self._dozed, backwards, open_=open_, training=self._dozing.training)
        self._dozed = 0

    def resume(self, parts: list[list[tuple[int, float]]], tentative: list[tuple[int, float]], open_: bool) -> None:
        """In the middle of a step, after this was heard of it."""
        self.notes = Notes(looked=False, losses=parts, tentative=tentative)
        self._unusual = True
        self._guarded(lambda: self._wake(len(parts), open_=open_))

    @property
    def is_asked(self) -> bool:
        """The user wants something done before weights are written."""
        return self._alarms.is_asked

    def fell(self, kind: str) -> None:
        self._events.fell = self._events.fell or kind

    def pass_step(self, loss: float | None, returned: Any) -> None:
        """Of a step that was only half listened to. Most of them end here, and little else is done."""
        try:
            now, events, dozing = time.perf_counter(), self._events, self._dozing
            seconds, self._ended = now - self._ended, now
            if loss is None:
                loss = events.loss_in_loop()
            rate = dozing.rate if dozing.rate is not None else self._rate_now()
            if len(self._waiting) >= MOST_WAITING:
                self.dropped += 1
            else:
                self.say(self._memory.read(self.steps, events.passes.count))
                said, self._said = tuple(self._said), []
                times = {"step": seconds, **events.passes.waited()}
                self._waiting.append(Dozed(self.steps, loss, rate, times, dozing.training, said))
            self.steps += 1
            self._dozed += 1
            self.own_seconds += self._dozing_seconds
            if self.steps >= self._quiet_until:
                events.weights.renewed(returned)
                self._own_before = self.own_seconds
                self._attend()
        except Exception as error:
            self.trouble, dozing.on = f"{type(error).__name__}: {error}", False

    def _rate_now(self) -> float | None:
        """As the update was given it, as the optimiser or the model keeps it, or as the loop does."""
        if self._events.rate is not None:
            return self._events.rate
        if self._rate is not None and self._rate.holder in (self._optimiser, self.model):
            return self._rate.get()
        in_loop = self._events.rate_in_loop() if self.waits_for_change else None
        return in_loop if in_loop is not None or self._rate is None else self._rate.get()

    def _is_looked_at(self) -> bool:
        if self._every is not None:
            return self.steps % self._every == 0
        return self.steps < FIRST_LOOKS or self._guard.every_gradient or self._pace.is_due(self.steps)

    def _paced(self, looked: bool, seconds: float, own: float) -> None:
        if looked:
            self._pace.paid(own)
        else:
            self._heard_pace.paid(own / MEASURING)
            if len(self._times) < TIMED:
                self._times.append(seconds)
        if len(self._times) < TIMED:
            return
        usual = self._step_seconds = self._step_seconds or median(self._times)
        if looked or not self._pace.steps:
            self._pace.calibrate(self.steps, usual)
        if self.steps >= FIRST_HEARD - 1:
            self._heard_pace.calibrate(self.steps, usual)
