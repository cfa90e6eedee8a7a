"""A watch of a loop around a hand-written network: its methods are heard on their classes, its functions in their modules."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sleuth.adapters.numpy.failure import explain
from sleuth.adapters.numpy.forms import understood
from sleuth.adapters.numpy.stepping import find_rate
from sleuth.adapters.numpy.watching.hearing import Hearing
from sleuth.adapters.numpy.watching.step import Notes, Taken, observations
from sleuth.adapters.numpy.watching.taps import Taps
from sleuth.core.adapter import Watching
from sleuth.core.guard import Act, Alarm, Guard
from sleuth.core.observation import NotFinite, Observation
from sleuth.core.stride import Stride
from sleuth.core.subject import Subject

# Steps that may wait to be drained. Looks hold copies of all weights: fewer of those.
MOST_WAITING = 4096
MOST_LOOKS_WAITING = 64
# The first steps are always looked at: most faults show there, and they tell what a look costs.
FIRST_LOOKS = 4
# Steps whose time is taken before the first look that is paced by it.
TIMED = 12
SHARE_FOR_LOOKING = 0.3
# What a look costs in all, of what it costs to copy: the other thread measures the copies, and Python lets one run at a time.
MEASURING = 3.0
PATIENCE = 6
# A loop without update() that leaves the weights alone so many times has steps that do nothing; fewer may be accumulation.
PATIENT_BACKWARDS = 20


NO_STEP = "no step was heard: the loop calls none of forward, backward and update of what was given"


class NumpyWatching(Watching):
    def __init__(
        self, model: Any, optimisers: Sequence[Any], *, every: int | None, overhead: float, guard: Guard | None = None
    ) -> None:
        self._optimiser = optimisers[0] if optimisers else None
        self.model = understood(Subject(model, None, optimizer=self._optimiser)).model
        self._every, self._guard = every, guard or Guard()
        self._rate = find_rate(self.model, self._optimiser)
        self._waiting: deque[Taken] = deque()
        self._looks_waiting = 0
        self._own_before = 0.0
        self._taps = Taps()
        self._hearing = Hearing(self.model, self._optimiser, self)
        self._pace = Stride(overhead * SHARE_FOR_LOOKING, PATIENCE)
        self._times: list[float] = []
        self._ended = time.perf_counter()
        self._idle = 0  # backwards in a row that no change of the weights followed
        self._prints: list[float] = []
        self._alarmed = False  # something was not finite, and that was said
        self._due: list[Callable[[], None]] = []  # what the user wants done
        self._lossy = False  # a loss was heard
        self.notes = Notes(looked=True)
        self.steps = self.looks = self.dropped = 0
        self.own_seconds = 0.0
        self.trouble: str | None = None
        self.remarks: tuple[str, ...] = ()

    def open(self) -> None:
        self._hearing.install(self._taps)
        deaf = list(self._hearing.deaf)
        if self._guard.expectations:
            deaf.append("assertions on layers are not looked at in a hand-written network")
        self.remarks = tuple(deaf)

    def close(self) -> None:
        try:
            self._guarded(self._left_over)
        finally:
            self._taps.close()
        if not self.steps and self.trouble is None:
            self.remarks = (
                *self.remarks,
                "no step was heard: the loop calls none of forward, backward and update of what was given",
            )

    def _left_over(self) -> None:
        if self._hearing.waits_for_change and "backward" in self.notes.calls:
            self.step_ended()

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            taken = self._waiting.popleft()
            self._looks_waiting -= taken.notes.looked
            found += observations(taken, self.model)
        return found

    def explain(self, error: BaseException) -> list[Observation]:
        if not isinstance(error, Exception):
            return []
        phase = "backward" if self._hearing.inside("backward") else "forward"
        return [explain(error, phase, self.model)]

    def heard(self, kind: str, note: Callable[[], None]) -> None:
        """One event of the loop. Nothing of ours may end it, except what the user asked for."""
        if self.trouble is None:
            began = time.perf_counter()
            self._guarded(note)
            self.own_seconds += time.perf_counter() - began
            while self._due:
                self._due.pop(0)()

    def _guarded(self, note: Callable[[], None]) -> None:
        try:
            note()
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"

    def maybe_ended(self) -> None:
        """A loop that changes the weights itself: its step has ended when the next forward begins and they have changed."""
        if "backward" not in self.notes.calls:
            return
        prints = self._hearing.prints()
        if prints == self._prints and self._idle < PATIENT_BACKWARDS:
            self._idle += 1
            return
        self._idle = 0 if prints != self._prints else self._idle
        self.step_ended()

    def backward_ended(self, raw: Any) -> None:
        self._prints = self._hearing.prints() if self._hearing.waits_for_change else []
        if self.notes.looked:
            found = self._hearing.gradients(raw)
            self.notes.gradients = {k: np.array(v) for k, v in found.items() if v is not None}
            self.weights_kept()

    def weights_kept(self) -> None:
        if self.notes.looked:
            self.notes.before = {k: np.array(v) for k, v in self._hearing.weights().items()}

    def about_to_step(self) -> None:
        """What the user wants done happens before weights are written."""
        loss = self.notes.loss()
        if loss is not None and not np.isfinite(loss):
            self._tell(NotFinite(self.steps, "loss", None, int(np.isnan(loss)), int(np.isinf(loss))))
        bad = next((k for k, g in self.notes.gradients.items() if not np.isfinite(g).all()), None)
        if bad is not None:
            gradient = self.notes.gradients[bad]
            self._tell(NotFinite(self.steps, "gradient", bad, int(np.isnan(gradient).sum()), int(np.isinf(gradient).sum())))
        while self._guard.asked:
            finding = self._guard.asked.popleft()
            self._acted(self._guard.tell(Alarm(finding.name, self.steps, finding.summary, finding=finding)))

    def _tell(self, bad: NotFinite) -> None:
        if not self._alarmed:
            self._alarmed = True
            message = f"the {bad.what} is not finite at step {bad.step}"
            self._acted(self._guard.tell(Alarm(f"{bad.what}-not-finite", bad.step, message, (bad,))))

    def _acted(self, act: Act | None) -> None:
        if act is not None:
            self._due.append(act.do)

    def step_ended(self) -> None:
        notes, now = self.notes, time.perf_counter()
        seconds, self._ended = now - self._ended, now
        full = len(self._waiting) >= MOST_WAITING or (notes.looked and self._looks_waiting >= MOST_LOOKS_WAITING)
        after = {k: np.array(v) for k, v in self._hearing.weights().items()} if notes.looked and not full else {}
        rate = None if self._rate is None else self._rate.get()
        if full:
            self.dropped += 1
        else:
            self._waiting.append(Taken(notes, self.steps, rate, after, seconds))
            self._looks_waiting += notes.looked
        self._lossy |= notes.loss() is not None
        self.looks += notes.looked
        self.steps += 1
        own = self.own_seconds + time.perf_counter() - now
        self._paced(notes.looked, seconds, (own - self._own_before) * MEASURING)
        self._own_before = own
        self.notes = Notes(looked=self._is_looked_at())

    def _is_looked_at(self) -> bool:
        if self._every is not None:
            return self.steps % self._every == 0
        return self.steps < FIRST_LOOKS or self._guard.every_gradient or self._pace.is_due(self.steps)

    def _paced(self, looked: bool, seconds: float, own: float) -> None:
        if looked:
            self._pace.paid(own)
        elif len(self._times) < TIMED:
            self._times.append(seconds)
        if len(self._times) == TIMED and (looked or not self._pace.steps):
            self._pace.calibrate(self.steps, float(np.median(self._times)))
