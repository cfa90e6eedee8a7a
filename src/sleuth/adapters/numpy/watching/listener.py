"""Hears a loop around a hand-written network: what the calls of its functions mean for the step that is going on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.function_kind import FunctionKind
from sleuth.adapters.common.manual_loop.gradient_sums import GradientSums
from sleuth.adapters.common.manual_loop.learning_rate import find_rate
from sleuth.adapters.common.manual_loop.listener import ManualLoopListener, Put, Say
from sleuth.adapters.common.manual_loop.made_values import Made
from sleuth.adapters.common.manual_loop.notes import OWN, Notes, Told, number_first, number_in
from sleuth.adapters.common.manual_loop.patches import Args, Function, Options
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.pace import Pace
from sleuth.adapters.numpy.describing import activation_of, family_of
from sleuth.adapters.numpy.forms.layers import Layers
from sleuth.adapters.numpy.held_gradients import live_gradients
from sleuth.adapters.numpy.pass_listener import is_array
from sleuth.adapters.numpy.watching.accumulators import adds_up
from sleuth.adapters.numpy.watching.light_listener import LightListener, LightStep
from sleuth.adapters.numpy.watching.modes import ModeReader
from sleuth.adapters.numpy.watching.predecessors import Predecessors
from sleuth.adapters.numpy.watching.weights import Weights, argument
from sleuth.core.contract.guard import Guard
from sleuth.core.observation.calls import CallKind
from sleuth.core.runtime.tree import leaves

# Steps in which it is seen whether the loop itself adds gradients up.
FOLLOWED = 3
WRITES = (FunctionKind.UPDATE, FunctionKind.TRAIN_STEP)


class NumpyListener(ManualLoopListener):
    def __init__(self, model: Any, optimiser: Any, put: Put, say: Say, *, pace: Pace, guard: Guard) -> None:
        super().__init__(put, say, pace=pace, guard=guard)
        self.model, self._optimiser = model, optimiser
        self._held_rate = find_rate(model, optimiser)
        self._adds: bool | None = None
        self._follows = True  # gradients are compared from backward to step
        self._raw: Any = None  # what backward returned
        self._stepped = self._unusual = False
        self._prints: list[float] = []
        self._modes = ModeReader(model)
        self.weights = Weights(model, self.note_lost)
        self.optimisers = Predecessors(optimiser, self.weights)
        self.rate: float | None = None  # as an update was given it
        self.inside: set[FunctionKind] = set()  # functions that are running
        self.writes_heard = False  # something is heard that changes the weights; else the loop does
        self.writes_in_backward = False
        self.light = LightListener(self)

    @property
    def own_seconds(self) -> float:
        return self.pace.all_in_all(self.measured_seconds, self.light.steps)

    @contained
    def begin(self, kind: FunctionKind, function: Function, args: Args, options: Options, of: Any = None) -> None:
        """A function of this kind is called; `of`: the optimiser whose it is."""
        match kind:
            case FunctionKind.FORWARD:
                self._forward(function, args, options)
            case FunctionKind.BACKWARD if not self.calls.backwards:
                self._used = self._is_used(args[0] if args else None)
            case FunctionKind.CLEAR:
                self.meet(CallKind.ZERO_GRAD)
                self.calls.cleared()
            case FunctionKind.CLIP:
                self.meet(self.calls.clipped(self._stepped))
            case FunctionKind.TRAIN_STEP:
                self.weights.used(function, args, options)
                self._keep_weights()
        if kind in WRITES:
            self.meet(CallKind.STEP)
            if of is not None:
                self.say(self.optimisers.stepped(of, self.steps, self.passes.count))
        if self._writes(kind):
            given = argument(function, args, options, "rate")
            self.rate = float(given) if isinstance(given, int | float | np.floating) else self.rate
        if kind is FunctionKind.UPDATE:
            self._about_to_step(function, args, options)

    @contained
    def end(self, kind: FunctionKind, number: int, function: Function, args: Args, options: Options, returned: Any) -> None:
        if kind is FunctionKind.LOSS:
            self.note_loss(number, function, args, options, returned)
            if isinstance(returned, tuple) and len(returned) > 1 and isinstance(returned[1], Mapping):
                self._backward_ended(returned[1], None)
        elif kind is FunctionKind.TRAIN_STEP and (value := number_in(number_first(returned))) is not None:
            self.notes.add_loss(OWN, value)
        elif kind is FunctionKind.BACKWARD:
            self._backward_ended(returned, argument(function, args, options, "gradient"))
        if self._writes(kind):
            self.weights.renewed(returned)
            if FunctionKind.TRAIN_STEP not in self.inside:
                self._step_ended()

    @contained
    def layer_made(self, path: str, layer: Any, returned: Any) -> None:
        array = next((a for _, a in leaves(returned, is_array)), None)
        family = family_of(layer)
        if array is not None and array.ndim and family not in ("container", "loss"):
            self.notes.made.append(Made(path, family, activation_of(layer), np.array(array), array, None, None))

    def _writes(self, kind: FunctionKind) -> bool:
        return kind in WRITES or (kind is FunctionKind.BACKWARD and self.writes_in_backward)

    def _forward(self, function: Function, args: Args, options: Options) -> None:
        in_backward = FunctionKind.BACKWARD in self.inside
        if not in_backward:
            self.end_last_step()
        self.weights.used(function, args, options)
        if in_backward or (FunctionKind.TRAIN_STEP in self.inside and self.calls.backwards):
            return
        self.loop_functions.look_from_inside()
        kind = self.calls.settle()
        if kind is not None:
            self.say(self._modes.changed(self.steps, False, kind == CallKind.VALIDATE_IN_TRAIN))
        given = next((a for a in args[::-1] if isinstance(a, np.ndarray)), None)
        self.calls.forward(self._modes.of_call(function, args, options), given)
        self.notes.forward()
        if self.writes_in_backward:
            self._keep_weights()

    def _is_used(self, owner: Any) -> bool:
        """Is a gradient that a step has used still where this backward adds to it?"""
        if self._adds is None:
            self._adds = owner is not None and not isinstance(owner, np.ndarray | dict | list) and adds_up(owner)
        if not self._stepped or not self._adds:
            return False
        parameters = None if isinstance(self.model, Layers) else self.weights.parameters
        return any(bool(g.any()) for g in live_gradients(owner, parameters))

    def _backward_ended(self, raw: Any, upstream: Any) -> None:
        notes = self.notes
        self.note_backward(_scale(upstream, notes.heard[-1].gradient) if notes.heard else None)
        self.say(self._modes.changed(self.steps, True, self.calls.trained_in is not False))
        self._raw = raw
        found = self.weights.gradients(raw) if notes.looked or self._follows else {}
        if self._follows:
            self._sums.backward(found)
        if notes.looked:
            self._keep_gradients(found)
            if not self.writes_in_backward:
                self._keep_weights()
        if not self.writes_heard:
            self._prints = self.weights.prints()
            self.before_write(notes.loss())

    def _about_to_step(self, function: Function, args: Args, options: Options) -> None:
        given = argument(function, args, options, "gradients")
        if given is None:
            given = argument(function, args, options, "gradient")
        found: dict[str, Any] = {}
        if self._follows or self.calls.erased:
            found = self.weights.gradients(given if given is not None else self._raw)
        if self._follows:
            # A loop that hands on what backward returned adds nothing up: that need not be followed.
            handed_on = (given is None or given is self._raw) and self.calls.backwards < 2
            self.sum_up(found, added=bool(self._adds))
            self._follows = not handed_on or self.steps < FOLLOWED
        if self.calls.erased:
            self.calls.erased = bool(found) and not any(g is not None and g.any() for g in found.values())
        if self.notes.looked and found:
            self._keep_gradients(found)
        self.before_write(self.notes.loss())

    def _keep_gradients(self, found: Mapping[str, np.ndarray | None]) -> None:
        self.notes.gradients = {k: np.array(v) for k, v in found.items() if v is not None}

    def _keep_weights(self) -> None:
        if self.notes.looked:
            self.notes.before = self.weights.copied()

    def end_last_step(self) -> None:
        """A loop that changes the weights itself: its step has ended when the next forward begins and they have changed."""
        if not self.writes_heard and self.calls.backwards and self.weights.prints() != self._prints:
            self._step_ended()

    @contained
    def finish(self) -> None:
        self.light.leave()
        super().finish()

    def _step_ended(self) -> None:
        used, erased = CallKind.STEP_ON_USED_GRADIENT, CallKind.STEP_ON_ERASED_GRADIENT
        kind = used if self._used else erased if self.calls.erased else CallKind.STEP
        self.end_step(kind, self.weights.copied, lr=self._rate_now(), unusual=self._unusual)
        self._sums.parts = []
        self._stepped, self._unusual = True, False
        self._attend()

    def _rate_now(self) -> float | None:
        """As the update was given it, as the optimiser or the model keeps it, or as the loop does."""
        if self.rate is not None:
            return self.rate
        held = self._held_rate
        if held is not None and held.holder in (self._optimiser, self.model):
            return held.get()
        in_loop = None if self.writes_heard else self.rate_in_loop()
        return in_loop if in_loop is not None or held is None else held.get()

    def _attend(self) -> None:
        """How closely is the step that begins now followed?"""
        step, looked = self.steps, self.looks_at(self.steps)
        heard = self.pace.listens_to(step, 2 if self._follows else 1)
        if looked or heard:
            self._listen_in_full(looked)
        elif not self.light.on:
            self.notes = Notes(looked=False)
            self.light.begin(self.usual, self.calls.trained_in is not False, self.rate, self.optimisers.latest)
        self.light.until = self.pace.quiet_until(step)

    def _listen_in_full(self, looked: bool) -> None:
        if self.light.on:
            self.light.on = False
            self._catch_up()
        self.notes = Notes(looked=looked)

    def _catch_up(self) -> None:
        """Steps went by that only the light listener heard."""
        self.rate = self.light.rate
        self._sums = GradientSums()
        self._used, self._stepped = False, True
        self.optimisers.passed(self.light.take_passed())

    @contained
    def resume(self, parts: list[list[Told]], tentative: list[Told], *, is_open: bool) -> None:
        """In the middle of a step, after the light listener heard this of it. `is_open`: a forward came last."""
        self.notes = Notes(looked=False, losses=parts, tentative=tentative)
        self._unusual = True
        self._catch_up()
        for _ in range(len(parts)):
            self.calls.forward(self.light.training)
            self.calls.backward()
        if is_open:
            self.calls.forward(self.light.training)

    def pass_step(self, loss: float | None, returned: Any) -> None:
        """Of a step that only the light listener heard. Most of them end here, and little else is done."""
        seconds, _ = self._stopwatch.step_ended(self.measured_seconds)
        step, light = self.steps, self.light
        if loss is None:
            loss = self.loss_in_loop()
        rate = light.rate if light.rate is not None else self._rate_now()
        self.say(self._memory.after_step(step, self.passes.count))
        self._put(LightStep(step, loss, rate, seconds, self.passes.waited(), light.training), 0)
        self.steps += 1
        if loss is not None and loss - loss != 0.0:
            self.alarms.before_step(step, loss)
            self._listen_in_full(self.looks_at(self.steps))
        elif self.steps >= light.until:
            self.weights.renewed(returned)
            self._attend()


def _scale(upstream: Any, told: np.ndarray | None) -> float | None:
    """By how much what went into backward is the gradient that the loss told; None where it is something else."""
    if not isinstance(upstream, np.ndarray) or told is None or upstream.shape != told.shape:
        return None
    size = float((told * told).sum())
    scale = float((upstream * told).sum()) / size if size > 0 else 0.0
    near = float(np.abs(upstream - scale * told).max(initial=0.0)) <= 1e-5 * float(np.abs(upstream).max(initial=0.0))
    return scale if scale > 0 and near else None
