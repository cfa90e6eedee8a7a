"""One watch of a torch loop: notes what a step does, looks at some steps in full, hands both on. Between the steps that it
listens to another one hears in its place, see dozing.py.

Runs inside the user's training: every method is cheap, none may raise, and none touches numbers or random states.
"""

import functools
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Concatenate, ParamSpec

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.watching import several, taps
from sleuth.adapters.torch.watching.attention import Attention
from sleuth.adapters.torch.watching.calls import NOTHING_HEARD, WITHOUT_GRAPH, Calls, Heard, phases
from sleuth.adapters.torch.watching.ear import Ears, Note
from sleuth.adapters.torch.watching.ears import EARS
from sleuth.adapters.torch.watching.ears.scenes import Scenes
from sleuth.adapters.torch.watching.looking import Looking
from sleuth.adapters.torch.watching.optimisers import Held, Optimisers
from sleuth.adapters.torch.watching.pace import Pace
from sleuth.adapters.torch.watching.places import Places, calling_frame, users_line
from sleuth.adapters.torch.watching.record import Look, Record, as_text, mean_of
from sleuth.core.guard import Guard
from sleuth.core.location import Location
from sleuth.core.observation import Call, Pending

P = ParamSpec("P")
Method = Callable[Concatenate["Watcher", P], None]
# A loop that does not step says so after so many backwards, and again whenever they have doubled.
LONG_WITHOUT_STEP = 32
# Of a module's parameters: enough to see whether it has gradients at all.
SOME = 16
# Looks at which gradients are read to see whether somebody clears them by hand: a loop does so from the start, or never.
READ_LOOKS = 8
# Of the calls that no step followed.
TAIL = 64
# Steps that a scene shows in full before its own.
RECENT = 16


def quietly(method: Method[P]) -> Method[P]:
    """Our errors never reach the user: the watch gives up and says so. The time spent is counted."""

    def call(watcher: "Watcher", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if watcher.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(watcher, *args, **kwargs)
        except Exception as error:
            watcher.gave_up = error
        watcher.measured_seconds += time.perf_counter() - began

    return call


class Watcher(taps.Listener):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        put: Callable[[Record], None],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
    ) -> None:
        self.model = model
        self.guard = guard or Guard()
        self.due: list[Callable[[], None]] = []  # what the user wants to happen at the next step; it may raise
        self.scaled = False
        self.stepping = 0
        self._recent: deque[Record] = deque(maxlen=RECENT)
        self.gave_up: Exception | None = None
        self.measured_seconds = 0.0
        self.steps = 0
        self.loss: float | torch.Tensor | None = None
        self.left: tuple[Note, ...] = ()  # what the ears still had to tell when the watch ended
        self.failed_backward = 0
        self._put = put
        self.optimisers = Optimisers(model, optimisers)
        self.looking_glass = Looking(model, asked=every is not None)
        self._pace = Pace(every=every, overhead=overhead)
        self._places = Places()
        self.scenes = Scenes(self)
        self.ears = Ears([*(ear(self) for ear in EARS), self.scenes])
        self.attention = Attention(self, self._pace)
        self.attention.needed = self.guard.every_gradient or bool(self.guard.expectations)
        self._calls = Calls()
        self._losses: list[float | torch.Tensor] = []
        self._losses_before = 0
        self._unscaled: torch.Tensor | None = None
        self._scaler_enabled = False
        self._on_scale = False  # the gradients wait for a scaler to bring them back to their size
        self._inside_step = 0
        self._step_frame = 0
        self._with_closure = False
        self._own_before = 0.0
        self._began = time.perf_counter()
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        taps.join(self)
        self._undo.append(functools.partial(taps.leave, self))
        roots = several.roots(self.model, self)
        self._undo += [root.leave for root in roots]
        self._undo.append(self.looking_glass.stop)
        self.attention.open(roots)

    @property
    def looking(self) -> bool:
        return self.looking_glass.look is not None

    @property
    def looks(self) -> int:
        return self.looking_glass.looks

    @property
    def inside_step(self) -> bool:
        return self._inside_step > 0

    @property
    def inside_closure(self) -> bool:
        return self._with_closure

    @property
    def own_seconds(self) -> float:
        return self._pace.all_in_all(self.measured_seconds, self.attention.dozed)

    def listen_on(self, steps: int) -> None:
        self.attention.until = self.steps + 1 + steps

    def recent_steps(self) -> list[dict[str, Any]]:
        """The last steps, oldest first, as plain values; NaN and Inf as text."""
        return [
            {
                "step": record.step,
                "optimiser": record.optimiser,
                "loss": as_text(record.loss),
                "lr": as_text(record.lr),
                "calls": list(record.calls),
                "seconds": record.seconds,
            }
            for record in self._recent
        ]

    def lines(self) -> dict[str, Location | None]:
        """The user's line behind each kind of call, the latest that was new."""
        return dict(self._places.lines)

    @property
    def deaf(self) -> list[str]:
        return self.ears.deaf

    def close(self) -> None:
        self.attention.wake(None)
        while self._undo:
            self._undo.pop()()
        self.ears.tell("close")
        self.left = (*self.left, *self.ears.take(), *self._last_words())
        self._let_go()

    def _let_go(self) -> None:
        """What was watched may be collected, though the watch is held on for its report."""
        self.ears.let_go()
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None
        nothing = nn.Module()
        self.model, self.optimisers = nothing, Optimisers(nothing, ())
        self.looking_glass.let_go()
        self.attention.let_go()
        self._losses, self._unscaled, self.loss = [], None, None
        self._recent.clear()

    @quietly
    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if torch.is_grad_enabled():
            kind = "forward" if self.model.training else "forward-in-eval"
        else:
            kind = "validate-in-train" if self.model.training else "validate"
        self._calls.say(kind)
        if kind in WITHOUT_GRAPH:
            self._calls.note_input(args)
        self._places.note(kind, calling_frame())
        self.ears.tell("forward", args, kwargs)

    @quietly
    def hear_output(self, output: Any) -> None:
        if isinstance(output, torch.Tensor) and not output.requires_grad:
            self._calls.without_graph()
        self.ears.tell("output", output)

    # What torch's own classes tell.

    @quietly
    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._losses_before = len(self._losses)
        self._calls.say("backward")
        self._places.note("backward", calling_frame())
        self.looking_glass.backward()
        self.scaled = self._unscaled is not None
        self._on_scale = self.scaled and self._scaler_enabled
        value, self._unscaled = (loss if self._unscaled is None else self._unscaled), None
        self.loss = None
        if value.numel() == 1:
            self.loss = value.item() if value.is_cpu else value.detach()
            self._losses.append(self.loss)
        for states in self.optimisers.states:
            states.before_backward()
        self.ears.tell("backward", loss, options)

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        self._backward_ended(loss)
        if self.due and self._inside_step:  # a closure: the optimiser writes as soon as it returns
            self.speak_up()

    @quietly
    def _backward_ended(self, loss: torch.Tensor) -> None:
        reached = [states.after_backward(reading=self._reading) for states in self.optimisers.states]
        if not any(reached):  # the backward of another model
            self.attention.needed = True
            self._losses = self._losses[: self._losses_before]
            self._calls.unsay("backward")
            return
        self.ears.tell("backward_end", loss)
        backwards = self._calls.counts["backward"]
        if backwards >= LONG_WITHOUT_STEP and backwards & (backwards - 1) == 0:
            self.left = (*self.left, self._pending())

    @quietly
    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None:
        self.failed_backward = id(error)  # the error itself would keep the user's frames alive
        self.ears.tell("backward_failed", loss)

    @quietly
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        self.ears.tell("loss", name, args, kwargs, returned)

    @quietly
    def hear_index(self, iterator: Any, positions: Any) -> None:
        self.ears.tell("index", iterator, positions)

    @quietly
    def hear_batch(self, iterator: Any, batch: Any) -> None:
        if iterator._num_yielded <= 1:
            self.optimisers.begin_pass()
        self.ears.tell("batch", iterator, batch)

    @quietly
    def hear_call(self, kind: str, thing: Any) -> None:
        frame = calling_frame()
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        if kind == "zero_grad":
            held = self.optimisers.known(thing)
            if held is None and isinstance(thing, Optimizer):
                return
            for states in self.optimisers.states if held is None else (held.states,):
                states.clear()
        if kind == "unscale":
            self._on_scale = False
        self._calls.say(kind)
        self._places.note(kind, frame)

    @quietly
    def hear_made(self, optimiser: Optimizer) -> None:
        self.optimisers.made(optimiser, users_line(calling_frame()))

    @quietly
    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        frame = calling_frame()
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        optimiser = getattr(scheduler, "optimizer", None)
        held = self.optimisers.find(optimiser) if isinstance(optimiser, Optimizer) else None
        if held is None:
            return
        stepped = held.steps or held.carried or getattr(optimiser, "_opt_called", False)
        kind = "told-scheduler" if told else "scheduler" if stepped else "first-scheduler"
        self._calls.say(f"{kind}@{held.number}")
        self._places.note(kind, frame)

    @quietly
    def hear_clip(self) -> None:
        for states in self.optimisers.states:
            states.settle()

    @quietly
    def hear_clip_end(self, owner: Any) -> None:
        touched = {states.handle() for states in self.optimisers.states}
        if "fresh" in touched:
            kind = "clip-on-scaled-gradient" if self._on_scale else "clip"
        elif "used" in touched:
            kind = "clip-on-used-gradient"
        elif "empty" in touched or self._has_no_gradient(owner):
            kind = "clip-on-nothing"
        else:
            return
        self._calls.say(kind)
        self._places.note(kind, calling_frame())

    def _has_no_gradient(self, owner: Any) -> bool:
        """Is this a part of the model, and does nothing in it have a gradient?"""
        some = list(islice(owner.parameters(), SOME)) if isinstance(owner, nn.Module) else [owner]
        own = {id(p) for p in self.model.parameters()}
        return any(id(p) in own for p in some) and all(p is None or p.grad is None for p in some)

    @quietly
    def hear_scale(self, loss: torch.Tensor, enabled: bool) -> None:
        self._unscaled, self._scaler_enabled, self.attention.needed = loss, enabled, True

    @quietly
    def hear_scaler_step(self, optimiser: Optimizer) -> None:
        held = self.optimisers.known(optimiser)
        # A step that took place has emptied the list.
        if self._calls and not self._calls.last.startswith("step") and held is not None:
            used = held.states.step(reading=False) == "step-on-used-gradient"
            self._calls.say("skipped-on-used-gradient" if used else "skipped")
            self._on_scale = False

    # The optimisers. A subclass that calls super().step() makes hooks fire twice, and so does one that wraps another.

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None:
        if self._inside_step and not _is_running(self._step_frame):  # a step that raised has no end
            self._inside_step = 0
        if self._inside_step:
            self._inside_step += 1
        elif self._finds(optimiser):
            self._inside_step, self._step_frame = 1, id(calling_frame())
            self._before_step(optimiser, closure is not None)
            if self.due:
                self.speak_up()

    def hear_step_end(self, optimiser: Optimizer) -> None:
        self._inside_step -= 1
        if self._inside_step == 0:
            self._after_step(optimiser)
        self._inside_step = max(self._inside_step, 0)

    def _finds(self, optimiser: Optimizer) -> bool:
        try:
            return self.gave_up is None and self.optimisers.find(optimiser) is not None
        except Exception as error:
            self.gave_up = error
            return False

    def speak_up(self) -> None:
        """The one place from which something of ours may raise into the user's code, because the user asked for it."""
        due, self.due = self.due, []
        try:
            for act in due:
                act()
        except BaseException:
            self._inside_step = 0
            raise

    @quietly
    def _before_step(self, optimiser: Optimizer, closure: bool) -> None:
        held = self._holding(optimiser)
        self.stepping = number = held.number
        self._with_closure = closure
        if not closure:
            self._end_of_calls(held)
        self._places.note("step", calling_frame())
        self.ears.tell("before_step", number)
        self.looking_glass.before_step(held, closure=closure)

    @quietly
    def _after_step(self, optimiser: Optimizer) -> None:
        held = self._holding(optimiser)
        number = held.number
        if self._with_closure:  # forward and backward ran inside the step
            self.attention.needed = True
            self._end_of_calls(held)
        held.states.after_step()
        self._on_scale = False
        look = self.looking_glass.after_step(held, closure=self._with_closure)
        self.ears.tell("after_step", number)
        heard = self._calls.take(number)
        met = self.optimisers.stepped(held, optimiser, self.steps)
        notes: tuple[Note, ...] = () if met is None else (met,)
        if any(length > 1 for length in heard.lengths):
            notes += (functools.partial(phases, self.steps, number, heard, False),)
        notes += (*self.looking_glass.take_notes(self.steps), *self.ears.take())
        losses, self._losses = self._losses, []
        training = "forward-in-eval" not in heard.names
        self._end_step(held, optimiser, losses, look, heard, tuple(self._places.take()), notes, training)
        self.attention.heard(heard.counts)
        self.attention.prepare(held, training)

    def pass_step(self, held: Held, optimiser: Optimizer, losses: list[float | torch.Tensor], training: bool) -> None:
        """Of a step that was not listened to. Most of them end here, so it is written out."""
        held.steps += 1
        held.written = None  # nobody looks who writes between these steps
        self.attention.dozed += 1
        if self.looking_glass.look is not None:
            look = self.timed(self.looking_glass.after_step, held)
            notes = self.looking_glass.take_notes(self.steps)
            self._end_step(held, optimiser, losses, look, NOTHING_HEARD, (), notes, training)
        else:
            now = time.perf_counter()
            seconds, self._began = now - self._began, now
            loss = losses[0] if len(losses) == 1 else mean_of(losses)
            lr = optimiser.param_groups[0].get("lr")
            if type(lr) is not float and lr is not None:
                lr = float(lr)
            record = Record(self.steps, held.number, loss, lr, (), (), seconds, None, {}, (), training)
            self._recent.append(record)
            self._put(record)
            self.steps += 1
        if self.steps >= self.attention.quiet_until:
            self.attention.prepare(held, training)

    def _end_step(
        self,
        held: Held,
        optimiser: Optimizer,
        losses: list[float | torch.Tensor],
        look: Look | None,
        heard: Heard,
        places: tuple[tuple[str, Location | None], ...],
        notes: tuple[Note, ...],
        training: bool,
    ) -> None:
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        loss = losses[0] if len(losses) == 1 else mean_of(losses)
        lr = optimiser.param_groups[0].get("lr")
        if type(lr) is not float and lr is not None:
            lr = float(lr)
        unusual = self.attention.woken
        known = (self.steps, held.number, loss, lr, heard.names, places, seconds, look, heard.counts, notes, training, unusual)
        record = Record(*known)
        self._recent.append(record)
        self._put(record)
        if look is not None or self.attention.full:
            own, self._own_before = self.measured_seconds - self._own_before, self.measured_seconds
            self._pace.step_ended(self.steps, seconds, looked=look is not None, heard=self.attention.full, own_seconds=own)
        self.steps += 1

    def resume(self, stepped: Held | None, backwards: int, losses: Sequence[float | torch.Tensor]) -> None:
        """Steps went by that were only half listened to; see Attention.wake."""
        self._losses = list(losses)
        if backwards:
            self._calls.say("backward", backwards)
        for held in self.optimisers.held:
            held.states.resume(stepped=held is stepped)
        self.ears.tell("resumed")

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error
        self.attention.wake(None)

    def may_find(self, optimiser: Optimizer) -> bool:
        return self.gave_up is None and not self.optimisers.is_foreign(optimiser)

    def tell_scenes(self, event: str, *args: Any) -> None:
        try:
            getattr(self.scenes, event)(*args)
        except Exception as error:
            self.give_up(error)

    def timed(self, act: Callable[..., Look | None], held: Held) -> Look | None:
        notes, began = self.looking_glass.note_seconds(), time.perf_counter()
        result = act(held, closure=False)
        self.measured_seconds += time.perf_counter() - began + notes
        return result

    @property
    def _reading(self) -> bool:
        return self.looking and self.looks < READ_LOOKS

    def _holding(self, optimiser: Optimizer) -> Held:
        held = self.optimisers.known(optimiser)
        assert held is not None
        return held

    def _end_of_calls(self, held: Held) -> None:
        """Several optimisers may stand on the same parameters; only the one that steps uses the gradient."""
        self._calls.say(held.states.step(reading=self._reading))
        self.measured_seconds += self.looking_glass.note_seconds()

    def _pending(self) -> Pending:
        heard = self._calls.heard(None)
        return Pending(self.steps, heard.names[-TAIL:], dict(heard.counts), len(self.optimisers), self.optimisers.idle())

    def _last_words(self) -> Iterator[Note]:
        """What came after the last step."""
        try:
            heard = self._calls.heard(None)
            yield from (Call(kind, self.steps, location, -1) for kind, location in self._places.take())
            yield from phases(self.steps, -1, heard, after_last=True)
            yield self._pending()
        except Exception as error:
            self.gave_up = self.gave_up or error


def _is_running(frame_number: int) -> bool:
    """Is this step still going on, around the one that begins? That one's own frame may have the number of one that is gone."""
    frame: Any = calling_frame().f_back
    while frame is not None and id(frame) != frame_number:
        frame = frame.f_back
    return frame is not None
