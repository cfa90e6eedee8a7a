"""A watch of a loop around evaluate(): each call tells the weights it was given, and those of the next call tell the step."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.alarms import Alarms
from sleuth.adapters.common.manual_loop.crash import Network, explain_crash
from sleuth.adapters.common.manual_loop.gradient_sums import Summed
from sleuth.adapters.common.manual_loop.learning_rate import find_rate
from sleuth.adapters.common.manual_loop.loop_calls import Order
from sleuth.adapters.common.manual_loop.loop_scope import loop_frame, users_line
from sleuth.adapters.common.manual_loop.loop_variables import Variables
from sleuth.adapters.common.manual_loop.process_memory import ProcessMemory
from sleuth.adapters.common.manual_loop.step import Notes, Taken, observations
from sleuth.adapters.listening.stride import Stride
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.failure import explain
from sleuth.adapters.mithril.given_model import is_physical
from sleuth.adapters.mithril.graph import Graph
from sleuth.adapters.mithril.key_roles import wire
from sleuth.adapters.mithril.stepping import METHODS
from sleuth.adapters.mithril.watching.evaluate_patch import Tap
from sleuth.adapters.mithril.watching.full_look import looked_into
from sleuth.adapters.mithril.watching.loop_listener import Around
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Call, Crash, Observation, Pending
from sleuth.core.runtime.place import location_of

MOST_WAITING = 4096
FIRST_LOOKS = 4
TIMED = 12
SHARE_FOR_LOOKING = 0.5
PATIENCE = 6
# So many entries of each array are compared to see whether it changed.
PRINTED = 64
COMPILE = "a logical model does nothing by itself: watch the physical model that ml.compile(…) returns."
NO_STEP = "no step was heard: the loop calls evaluate() of another model, or never asks for gradients"


class MithrilWatching(Watching):
    def __init__(
        self, model: Any, optimisers: Sequence[Any], *, every: int | None, overhead: float, guard: Guard | None = None
    ) -> None:
        physical = model[0] if isinstance(model, tuple) else model
        if not is_physical(physical):
            raise UnusableInput(COMPILE)
        self._graph = Graph(physical)
        self._wiring = wire(self._graph, None)
        self._plain = physical.backend.backend_type == "numpy"
        self._optimiser = optimisers[0] if optimisers else None
        self._rate = find_rate(None, self._optimiser)
        self._every, self._guard = every, guard or Guard()
        self._tap = Tap(physical, self._begins, self._ended_call, self._broke)
        self._around = Around(self._optimiser, METHODS, self)
        self._order, self._summed, self._variables, self._memory = Order(), Summed(), Variables(), ProcessMemory()
        self._pace = Stride(overhead * SHARE_FOR_LOOKING, PATIENCE)
        self._times: list[float] = []
        self._ended = time.perf_counter()
        self._own_before = 0.0
        self._waiting: deque[tuple[Taken, Any]] = deque()
        self._looks_waiting = 0
        self._said: list[Observation] = []
        self._places: set[str] = set()
        self._params: Mapping[str, Any] = {}
        self._prints: list[Any] = []
        self._data: Mapping[str, Any] | None = None
        self._loss: Any = None
        self._backwards = 0
        self._fell = self._used = self._crashed = False
        self._divided: float | None = None
        self._alarms = Alarms(self._guard)
        self.notes = Notes(looked=True)
        self.steps = self.looks = self.dropped = 0
        self.own_seconds = 0.0
        self.trouble: str | None = None
        self.remarks: tuple[str, ...] = ()

    def open(self) -> None:
        self._tap.open()
        self._around.open()
        if self._guard.expectations:
            self.remarks = ("assertions on layers are not looked at in a Mithril model",)

    def close(self) -> None:
        try:
            self._guarded(self._left_over)
        finally:
            self._tap.close()
            self._around.close()
            self._memory.close()
        if not self._backwards and self.trouble is None and not self._crashed:
            self.remarks = (*self.remarks, NO_STEP)

    def _left_over(self) -> None:
        if self._order.backwards and not self._around.updates and (self.steps or self._has_changed(self._params)):
            self._step_ended(self._params if self._has_changed(self._params) else None)
        heard = self._order.take(self.steps, last=True)
        idle = {0: self._backwards} if not self.steps and self._backwards else {}
        self._said += [*heard.phases, Pending(self.steps, heard.names, heard.counts, 1, idle)]

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            taken, loss = self._waiting.popleft()
            self._looks_waiting -= taken.notes.looked
            found += observations(taken if loss is None else taken._replace(loss=_number(loss)))
        said, self._said = self._said, []
        return found + said

    def explain(self, error: BaseException) -> list[Observation]:
        self._crashed = True
        if not isinstance(error, Exception):
            return []
        if not self._fell:
            return explain_crash(error, None, Network("params", self._weights), self.steps)
        lines = str(error).splitlines() or [""]
        crash = Crash(self.steps, type(error).__name__, lines[0], "forward", location_of(error.__traceback__))
        return [crash, explain(error, "forward")]

    def _weights(self) -> dict[str, np.ndarray]:
        return {k: arrays.values(v) for k, v in self._params.items() if arrays.is_array(v)}

    def heard(self, note: Callable[[], None]) -> None:
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

    def _broke(self) -> None:
        self._fell = True

    def _begins(self, params: Mapping[str, Any], data: Mapping[str, Any], wanted: Any) -> None:
        self.heard(lambda: self._begin(params, data, wanted))

    def _ended_call(self, params: Mapping[str, Any], data: Mapping[str, Any], wanted: Any, returned: Any) -> None:
        self.heard(lambda: self._end(params, data, wanted, returned))

    def _begin(self, params: Mapping[str, Any], data: Mapping[str, Any], wanted: Any) -> None:
        if self._order.backwards and not self._around.updates and self._has_changed(params):
            self._step_ended(params)
        self._around.look_around()
        same = self._data is not None and all(a is b for a, b in zip(self._data.values(), data.values(), strict=False))
        if wanted is False or not same:
            self._order.forward(True, id(next(iter(data.values()), None)))
            self.notes.forward()
        self._data = dict(data)

    def _end(self, params: Mapping[str, Any], data: Mapping[str, Any], wanted: Any, returned: Any) -> None:
        outputs = returned[0] if isinstance(returned, tuple) else returned
        if wanted is False:
            return
        gradients = dict(returned[1])
        if self._wiring.loss is None and not self._backwards:
            self._find_loss(outputs)
        self._say("backward")
        notes = self.notes
        notes.scales.append(self._scale(outputs, wanted))
        self._order.backward()
        notes.backward()
        self._backwards += 1
        self._loss = outputs.get(self._wiring.loss) if self._wiring.loss is not None else None
        if self._wiring.loss is not None and self._plain:
            notes.losses[-1].append((0, _number(self._loss)))
        self._params, self._prints, self._data = params, self._printed(params), None
        found = {k: arrays.values(g) for k, g in gradients.items() if arrays.is_array(g)}
        if self._plain:
            self._summed.backward(found)
        if notes.looked:
            own = {k: v for k, v in params.items() if arrays.is_array(v) and arrays.is_float(v)}
            notes.gradients = {k: np.array(v) for k, v in found.items() if k in own}
            notes.before = {k: np.array(arrays.values(v)) for k, v in own.items()}
            self._said += looked_into(self._graph, self._wiring, {**params, **data}, self.steps)
        if not self._around.updates:
            self.about_to_step(gradients)

    def _find_loss(self, outputs: Mapping[str, Any]) -> None:
        """A single output of one number is the loss; compiled without shapes the model does not know that of itself."""
        (name, value), *others = outputs.items()
        if not others and np.size(arrays.values(value)) == 1:
            self._wiring = wire(self._graph, name)

    def _scale(self, outputs: Mapping[str, Any], wanted: Any) -> float | None:
        """By how much what was asked for is the gradient of the loss."""
        if self._wiring.loss is not None:
            given = wanted.get(self._wiring.loss) if isinstance(wanted, Mapping) else None
            return 1.0 if given is None else _number(given) if np.size(given) == 1 else None
        told = self.notes.heard[-1].gradient if self.notes.heard else None
        given = next(iter(wanted.values()), None) if isinstance(wanted, Mapping) else None
        if told is None or given is None or np.shape(given) != told.shape or not np.any(told):
            return None
        ratio = float((arrays.values(given) * told).sum() / (told * told).sum())
        return ratio if np.allclose(arrays.values(given), ratio * told, rtol=1e-4) else None

    def about_to_step(self, gradients: Any) -> None:
        """What the user wants done happens before weights are written."""
        if isinstance(gradients, Mapping) and self._plain:
            found = {k: g for k, g in gradients.items() if isinstance(g, np.ndarray)}
            again, self._divided = self._summed.step(found, added=False)
            self._used |= again
            if self.notes.looked and self._around.updates:
                self.notes.gradients = {k: np.array(v) for k, v in found.items() if k in self.notes.before}
        loss = self.notes.loss() if self._plain or self.notes.looked else None
        self._alarms.before_step(self.steps, loss, self.notes.gradients)

    def _printed(self, params: Mapping[str, Any]) -> list[Any]:
        """Arrays of NumPy are written into; those of other backends are made anew."""
        own = [params[k] for k in self._graph.parameters if k in params]
        if not self._plain:
            return [id(a) for a in own]
        return [v for a in own for v in np.asarray(a).reshape(-1)[:: max(1, np.size(a) // PRINTED)].tolist()]

    def _has_changed(self, params: Mapping[str, Any]) -> bool:
        return self._printed(params) != self._prints

    def stepped(self, returned: Any) -> None:
        """The optimiser's own update has ended."""
        fresh = next((t for t in (returned if isinstance(returned, tuple) else (returned,)) if self._fits(t)), self._params)
        self._say("step")
        if self._order.backwards:
            self._step_ended(fresh)

    def _fits(self, tree: Any) -> bool:
        return (
            isinstance(tree, Mapping)
            and bool(tree)
            and set(tree) <= set(self._params)
            and all(map(arrays.is_array, tree.values()))
        )

    def _step_ended(self, after: Mapping[str, Any] | None) -> None:
        notes, now = self.notes, time.perf_counter()
        seconds, self._ended = now - self._ended, now
        full = len(self._waiting) >= MOST_WAITING
        # Nobody drained: the look is given up, which holds copies of all weights, and not the step.
        if notes.looked and self._looks_waiting >= notes.room():
            notes.give_up_look()
        copies = {k: np.array(arrays.values(after[k])) for k in notes.before if after is not None and k in after and not full}
        loss = notes.loss()
        if loss is None and self._loss is None:
            frame = loop_frame()
            loss = None if frame is None else self._variables.loss(frame)
        last = "step-on-used-gradient" if self._used else "step"
        heard = self._order.take(self.steps)
        memory = self._memory.read(self.steps, self._around.passes)
        self._said += [memory] if memory is not None else []
        if full:
            self.dropped += 1
        else:
            said, self._said = tuple(self._said), []
            seconds_by = {"step": seconds, **self._around.waited()}
            taken = Taken(notes, self.steps, self._rate_now(), copies, seconds_by, heard, last, loss, self._divided, said)
            self._waiting.append((taken, self._loss if loss is None else None))
            self._looks_waiting += notes.looked
        self._divided, self._used, self._loss = None, False, None
        self.looks += notes.looked
        self.steps += 1
        own = self.own_seconds + time.perf_counter() - now
        if notes.looked:
            self._pace.paid(own - self._own_before)
        elif len(self._times) < TIMED:
            self._times.append(seconds)
        if len(self._times) == TIMED and (notes.looked or not self._pace.steps):
            self._pace.calibrate(self.steps, float(np.median(self._times)))
        self._own_before = own
        due = self.steps % self._every == 0 if self._every is not None else self._pace.is_due(self.steps)
        self.notes = Notes(looked=due or (self._every is None and (self.steps < FIRST_LOOKS or self._guard.every_gradient)))

    def _rate_now(self) -> float | None:
        if self._rate is not None:
            return self._rate.get()
        frame = loop_frame()
        return None if frame is None else self._variables.rate(frame)

    def _say(self, kind: str) -> None:
        if kind not in self._places:
            self._places.add(kind)
            self._said.append(Call(kind, self.steps, users_line()))


def _number(value: Any) -> float:
    return float(arrays.values(value).reshape(-1)[0]) if np.size(arrays.values(value)) == 1 else float("nan")
