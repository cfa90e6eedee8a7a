"""One watch of a torch loop: notes what a step does, looks at some steps in full, hands both on. Between the steps that it
listens to another one hears in its place, see dozing.py.

Runs inside the user's training: every method is cheap, none may raise, and none touches numbers or random states.
"""

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.failures.given import argument_line
from sleuth.adapters.torch.source_lines import rate_line
from sleuth.adapters.torch.watching import created_at, joint_models, patches
from sleuth.adapters.torch.watching.call_places import calling_frame
from sleuth.adapters.torch.watching.calls import WITHOUT_GRAPH, phases
from sleuth.adapters.torch.watching.ear import Note, Recorders
from sleuth.adapters.torch.watching.full_look import Looking
from sleuth.adapters.torch.watching.journal import Ended, Journal
from sleuth.adapters.torch.watching.kept_training import kept
from sleuth.adapters.torch.watching.listener_switch import ListenerSwitch
from sleuth.adapters.torch.watching.loop_calls import Order, contained
from sleuth.adapters.torch.watching.manual_updates import written_at
from sleuth.adapters.torch.watching.optimisers import Held, Optimisers
from sleuth.adapters.torch.watching.pace import Pace
from sleuth.adapters.torch.watching.record import Look, Record
from sleuth.adapters.torch.watching.recorders import RECORDERS
from sleuth.adapters.torch.watching.recorders.kept_batches import KeptBatches
from sleuth.adapters.torch.watching.recorders.scenes import Scenes
from sleuth.adapters.torch.watching.stopwatch import Stopwatch
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.location import Location
from sleuth.core.observation import Call, Pending

# A loop that does not step says so after so many backwards, and again whenever they have doubled.
LONG_WITHOUT_STEP = 32
# Looks at which gradients are read to see whether somebody clears them by hand: a loop does so from the start, or never.
READ_LOOKS = 8
# Of the calls that no step followed.
TAIL = 64


class Watcher(Order):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        put: Callable[[Record], None],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        super().__init__(model, Optimisers(model, optimisers))
        self.guard = guard or Guard()
        self.due: list[Callable[[], None]] = []  # what the user wants to happen at the next step; it may raise
        self.scaled = False
        self.stepping = 0
        self._journal = Journal(put)
        self.steps = 0
        self.loss: float | torch.Tensor | None = None
        self.left: tuple[Note, ...] = ()  # what the ears still had to tell when the watch ended
        self.failed_backward = 0
        self.kept: Kept | None = None  # for an examination after the end
        self.full_looks = Looking(model, asked=every is not None)
        self._pace = Pace(every=every, overhead=overhead)
        self._stopwatch = Stopwatch(model)
        self.scenes = Scenes(self)
        self.kept_batches = KeptBatches(self, self.scenes) if keeps else None
        self.recorders = Recorders(
            [*(recorder(self) for recorder in RECORDERS), self.scenes, *([self.kept_batches] if self.kept_batches else [])]
        )
        self.switch = ListenerSwitch(self, self._pace)
        self.switch.needed = self.guard.every_gradient or bool(self.guard.expectations)
        self._losses: list[float | torch.Tensor] = []
        self._loader: Location | None = None  # where that of the batches which come now was made
        self._trained_on: Location | None = None  # that of the training's
        self._losses_before = 0
        self._inside_step = 0
        self._step_frame = 0
        self._with_closure = False
        self._own_before = 0.0
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        patches.join(self)
        self._undo.append(functools.partial(patches.leave, self))
        roots = joint_models.roots(self.model, self)
        self._undo += [root.leave for root in roots]
        self._undo.append(self.full_looks.stop)
        self.switch.open(roots)

    @property
    def looking(self) -> bool:
        return self.full_looks.look is not None

    @property
    def looks(self) -> int:
        return self.full_looks.looks

    @property
    def inside_step(self) -> bool:
        return self._inside_step > 0

    @property
    def inside_closure(self) -> bool:
        return self._with_closure

    @property
    def own_seconds(self) -> float:
        return self._pace.all_in_all(self.measured_seconds, self.switch.dozed)

    def listen_on(self, steps: int) -> None:
        self.switch.until = self.steps + 1 + steps

    def recent_steps(self) -> list[dict[str, Any]]:
        return self._journal.recent_steps()

    def lines(self) -> dict[str, Location | None]:
        """The user's line behind each kind of call, the latest that was new."""
        return dict(self.places.lines)

    @property
    def deaf(self) -> list[str]:
        return self.recorders.deaf

    def close(self) -> None:
        self.switch.wake(None)
        while self._undo:
            self._undo.pop()()
        self.recorders.tell("close")
        self.left = (*self.left, *self.recorders.take(), *self._last_words())
        self.kept = self._kept()
        self._let_go()

    def _kept(self) -> Kept | None:
        try:
            return None if self.kept_batches is None else kept(self.model, self.kept_batches)
        except Exception as error:
            self.gave_up = self.gave_up or error
            return None

    def _let_go(self) -> None:
        """What was watched may be collected, though the watch is held on for its report."""
        self.recorders.let_go()
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None
        nothing = nn.Module()
        self.model, self.optimisers = nothing, Optimisers(nothing, ())
        self.full_looks.let_go()
        self.switch.let_go()
        self._losses, self.unscaled, self.loss = [], None, None
        self._journal.clear()
        self.kept_batches = None

    @contained
    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if torch.is_grad_enabled():
            kind = "forward" if self.model.training else "forward-in-eval"
        else:
            kind = "validate-in-train" if self.model.training else "validate"
        self.calls.say(kind)
        if kind in WITHOUT_GRAPH:
            self.calls.note_input(args)
        self.places.note(kind, calling_frame())
        self.recorders.tell("forward", args, kwargs)
        self._stopwatch.forward()

    @contained
    def hear_output(self, output: Any) -> None:
        self._stopwatch.output()
        if isinstance(output, torch.Tensor) and not output.requires_grad:
            self.calls.without_graph()
        self.recorders.tell("output", output)

    # What torch's own classes tell.

    @contained
    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._losses_before = len(self._losses)
        self.calls.say("backward")
        self.places.note("backward", calling_frame())
        self.full_looks.backward()
        self.scaled = self.unscaled is not None
        self.on_scale = self.scaled and self.scaler_enabled
        value, self.unscaled = (loss if self.unscaled is None else self.unscaled), None
        self.loss = None
        if value.numel() == 1:
            self.loss = value.item() if value.is_cpu else value.detach()
            self._losses.append(self.loss)
        for states in self.optimisers.states:
            states.before_backward()
        self.recorders.tell("backward", loss, options)
        self._stopwatch.backward()

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        self._backward_ended(loss)
        if self.due and self._inside_step:  # a closure: the optimiser writes as soon as it returns
            self.speak_up()

    @contained
    def _backward_ended(self, loss: torch.Tensor) -> None:
        self._stopwatch.backward_end()
        reached = [states.after_backward(reading=self._reading) for states in self.optimisers.states]
        if not any(reached):  # the backward of another model
            self.switch.needed = True
            self._losses = self._losses[: self._losses_before]
            self.calls.unsay("backward")
            return
        self._trained_on = self._trained_on or self._loader
        self.recorders.tell("backward_end", loss)
        if self._inside_step:
            for states in self.optimisers.states:
                states.used_elsewhere()
        backwards = self.calls.counts["backward"]
        if backwards >= LONG_WITHOUT_STEP and backwards & (backwards - 1) == 0:
            self.left = (*self.left, self._pending())

    @contained
    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None:
        self.failed_backward = id(error)  # the error itself would keep the user's frames alive
        self.recorders.tell("backward_failed", loss)

    @contained
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        self.recorders.tell("loss", name, args, kwargs, returned)

    @contained
    def hear_index(self, iterator: Any, positions: Any) -> None:
        self.recorders.tell("index", iterator, positions)

    @contained
    def hear_batch(self, iterator: Any, batch: Any) -> None:
        first = iterator._num_yielded <= 1
        self._stopwatch.data(first)
        if first:
            self.optimisers.begin_pass()
            if torch.is_grad_enabled():
                self._loader = created_at.made_at(iterator._index_sampler)
        self.places.note("batch", calling_frame())
        self.recorders.tell("batch", iterator, batch)

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

    @contained
    def _before_step(self, optimiser: Optimizer, closure: bool) -> None:
        held = self._holding(optimiser)
        self.stepping = number = held.number
        self._with_closure = closure
        if not closure:
            self._end_of_calls(held)
        self.places.note("step", calling_frame(), written_at(optimiser))
        self.recorders.tell("before_step", number)
        self.full_looks.before_step(held, closure=closure)
        self._stopwatch.step()

    @contained
    def _after_step(self, optimiser: Optimizer) -> None:
        self._stopwatch.step_end()
        held = self._holding(optimiser)
        number = held.number
        if self._with_closure:  # forward and backward ran inside the step
            self.switch.needed = True
            self._end_of_calls(held)
        held.states.after_step()
        for other in self.optimisers.held:
            other.states.used_elsewhere()
        self.on_scale = False
        look = self.full_looks.after_step(held, closure=self._with_closure)
        self.recorders.tell("after_step", number)
        heard = self.calls.take(number)
        met = self.optimisers.stepped(held, optimiser, self.steps)
        notes: tuple[Note, ...] = () if met is None else (met,)
        training = "forward-in-eval" not in heard.names
        if any(length > 1 for length in heard.lengths) or not training:
            notes += (functools.partial(phases, self.steps, number, heard, False),)
        notes += (*self.full_looks.take_notes(self.steps), *self.recorders.take())
        losses, self._losses = self._losses, []
        places, unusual = tuple(self.places.take()), self.switch.woken
        took = self._stopwatch.take()
        self._end_step(Ended(self.steps, held, optimiser, losses, training, look, notes, heard, places, unusual, took))
        self.switch.heard(heard.counts)
        self.switch.prepare(held, training)

    def pass_step(self, held: Held, optimiser: Optimizer, losses: list[float | torch.Tensor], training: bool) -> None:
        """Of a step that was not listened to. Most of them end here, and little else is done."""
        held.steps += 1
        held.written = None  # nobody looks who writes between these steps
        self.switch.dozed += 1
        look: Look | None = None
        notes: tuple[Note, ...] = ()
        if self.full_looks.look is not None:
            look = self.timed(self.full_looks.after_step, held)
            notes = self.full_looks.take_notes(self.steps)
        self._end_step(Ended(self.steps, held, optimiser, losses, training, look, notes))
        if self.steps >= self.switch.quiet_until:
            self.switch.prepare(held, training)

    def _end_step(self, step: Ended) -> None:
        seconds = self._journal.write(step)
        if step.look is not None or self.switch.full:
            own, self._own_before = self.measured_seconds - self._own_before, self.measured_seconds
            looked, heard = step.look is not None, self.switch.full
            self._pace.step_ended(self.steps, seconds, looked=looked, heard=heard, own_seconds=own)
        self.steps += 1

    def resume(self, stepped: Held | None, backwards: int, losses: Sequence[float | torch.Tensor]) -> None:
        """Steps went by that were only half listened to; see ListenerSwitch.wake."""
        self._losses = list(losses)
        if backwards:
            self.calls.say("backward", backwards)
        self._stopwatch.take()
        for held in self.optimisers.held:
            held.states.resume(stepped=held is stepped)
        self.recorders.tell("resumed")

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error
        self.switch.wake(None)

    def may_find(self, optimiser: Optimizer) -> bool:
        return self.gave_up is None and not self.optimisers.is_foreign(optimiser)

    def tell_scenes(self, event: str, *args: Any) -> None:
        try:
            getattr(self.scenes, event)(*args)
        except Exception as error:
            self.give_up(error)

    def timed(self, act: Callable[..., Look | None], held: Held) -> Look | None:
        notes, began = self.full_looks.note_seconds(), time.perf_counter()
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
        self.calls.say(held.states.step(reading=self._reading))
        if held.states.wasted:
            self.calls.counts["erased-backward"] = held.states.wasted
        self.measured_seconds += self.full_looks.note_seconds()

    def _pending(self) -> Pending:
        heard = self.calls.heard(None)
        return Pending(self.steps, heard.names[-TAIL:], dict(heard.counts), len(self.optimisers), self.optimisers.idle())

    def _lines_before(self) -> Iterator[Call]:
        """Of what is done once and long before it matters."""
        parts = list(self.model.children()) if isinstance(self.model, joint_models.Several) else [self.model]
        for spot, training in (mode for part in parts for mode in created_at.modes_of(part)):
            yield Call("train" if training else "eval", self.steps, spot.location, -1)
            if training and any(code in (spot.code, *spot.code.co_consts) for code in self.places.validating):
                yield Call("train-to-validate", self.steps, spot.location, -1)
        if self.schedule is not None:
            # A function that tells the rate is the schedule itself.
            yield Call("made-scheduler", self.steps, argument_line(*self.schedule, "lr_lambda"), -1)
        elif (line := rate_line({place.file for place in self.places.lines.values() if place is not None})) is not None:
            yield Call("sets-rate", self.steps, line, -1)
        if self._trained_on is not None:
            yield Call("made-loader", self.steps, self._trained_on, -1)

    def _last_words(self) -> Iterator[Note]:
        """What came after the last step."""
        try:
            heard = self.calls.heard(None)
            yield from (Call(kind, self.steps, location, -1, function) for kind, location, function in self.places.take())
            yield from self._lines_before()
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
