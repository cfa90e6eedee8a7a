"""One watch of a torch loop: notes what a step does, looks at some steps in full, hands both on. Between the steps that it
listens to the light listener hears in its place, see light_listener.py.

Runs inside the user's training: every method is cheap, and none touches numbers or random states.
"""

import contextlib
import functools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.pace import Pace, Shares, Stopwatch
from sleuth.adapters.listening.recorder import Note, Recorders, built
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.call_places import calling_frame, is_running
from sleuth.adapters.torch.watching.full_look import FullLooks
from sleuth.adapters.torch.watching.kept_training import kept
from sleuth.adapters.torch.watching.last_words import last_words
from sleuth.adapters.torch.watching.listener_switch import ListenerSwitch
from sleuth.adapters.torch.watching.manual_updates import written_at
from sleuth.adapters.torch.watching.model_calls import roots_of
from sleuth.adapters.torch.watching.optimisers import Held, Optimisers
from sleuth.adapters.torch.watching.pass_calls import PassCalls
from sleuth.adapters.torch.watching.record import RECENT, Look, Record, as_plain_values, mean_of, rate_of
from sleuth.adapters.torch.watching.recorders import RECORDERS
from sleuth.adapters.torch.watching.recorders.kept_batches import KeptBatches
from sleuth.adapters.torch.watching.recorders.scenes import Scenes
from sleuth.adapters.torch.watching.recursion_room import more_recursion
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.location import Location
from sleuth.core.observation.calls import CallKind

# `unseen`: from benchmarks/watch.py.
SHARES = Shares(unseen=0.1)


class Watcher(PassCalls):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        put: Callable[[Record, int], None],
        say: Callable[[Any], None],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        super().__init__(model, Optimisers(model, optimisers))
        self._put, self.say = put, say
        self.guard = guard or Guard()
        self.due: list[Callable[[], None]] = []  # what the user wants to happen at the next step; it may raise
        self.stepping = 0
        self.kept: Kept | None = None  # for an examination after the end
        self.full_looks = FullLooks(self, asked=every is not None)
        self._pace = Pace(every=every, overhead=overhead, shares=SHARES)
        self._stopwatch = Stopwatch()
        self._recent: deque[Record] = deque(maxlen=RECENT)
        self.scenes = Scenes(self)
        self.kept_batches = KeptBatches(self, self.scenes) if keeps else None
        optional = [] if self.kept_batches is None else [self.kept_batches]
        failed: list[str] = []
        self.recorders = Recorders([*built(RECORDERS, self, failed), self.scenes, *optional], failed=failed)
        self.remarks = self.recorders.failed
        self.switch = ListenerSwitch(self, self._pace)
        self.switch.needed = self.guard.every_gradient or bool(self.guard.expectations)
        self._step_frame = 0
        self._with_closure = False
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        patches.join(self)
        self._undo.append(more_recursion())
        self._undo.append(functools.partial(patches.leave, self))
        roots = roots_of(self.model, self)
        self._undo += [root.leave for root in roots]
        self._undo.append(self.full_looks.stop)
        self.switch.open(roots)

    @property
    def inside_closure(self) -> bool:
        return self._with_closure

    @property
    def own_seconds(self) -> float:
        return self._pace.all_in_all(self.measured_seconds, self.switch.light_steps)

    def listen_on(self, steps: int) -> None:
        self.switch.until = self.steps + 1 + steps

    def recent_steps(self) -> list[dict[str, Any]]:
        return as_plain_values(self._recent)

    def lines(self) -> dict[str, Location | None]:
        """The user's line behind each kind of call, the latest that was new."""
        return {str(kind): line for kind, line in self.places.lines.items()}

    def may_find(self, optimiser: Optimizer) -> bool:
        return self.gave_up is None and not self.optimisers.is_foreign(optimiser)

    def timed(self, act: Callable[..., Look | None], held: Held) -> Look | None:
        notes, began = self.full_looks.note_seconds(), time.perf_counter()
        result = act(held, closure=False)
        self.measured_seconds += time.perf_counter() - began + notes
        return result

    # The end.

    def close(self) -> None:
        self._resume_at_end()
        while self._undo:
            self._undo.pop()()
        self._end_recording()
        self._say_last_words()
        self._keep()
        self._let_go()

    def give_up(self, error: Exception) -> None:
        """Nothing of ours stays in the user's training."""
        if self.gave_up is None:
            self.gave_up = error
            for end in (self.switch.give_back, self.full_looks.stop, self._end_recording):
                with contextlib.suppress(Exception):
                    end()

    @contained
    def _resume_at_end(self) -> None:
        self.switch.listen_fully(None)

    def _end_recording(self) -> None:
        self.recorders.tell("close")
        self.say(self.recorders.take())
        self.recorders.let_go()

    @contained
    def _say_last_words(self) -> None:
        self.say(tuple(last_words(self)))

    def _keep(self) -> None:
        try:
            self.kept = None if self.kept_batches is None else kept(self.model, self.kept_batches)
        except Exception as error:
            self.give_up(error)

    def _let_go(self) -> None:
        """What was watched may be collected, though the watch is held on for its report."""
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None
        nothing = nn.Module()
        self.model, self.optimisers = nothing, Optimisers(nothing, ())
        self.full_looks.let_go()
        self.switch.let_go()
        self._losses, self.unscaled, self.loss = [], None, None
        self._recent.clear()
        self.kept_batches = None

    # The optimisers. A subclass that calls super().step() makes hooks fire twice, and so does one that wraps another.

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None:
        if self._inside_step and not is_running(self._step_frame):  # a step that raised has no end
            self._inside_step = 0
        if self._inside_step:
            self._inside_step += 1
        elif self.gave_up is None and self.optimisers.find(optimiser) is not None:
            self._inside_step, self._step_frame = 1, id(calling_frame())
            self._before_step(optimiser, closure is not None)

    def hear_step_end(self, optimiser: Optimizer) -> None:
        self._inside_step -= 1
        if self._inside_step == 0:
            self._after_step(optimiser)
        self._inside_step = max(self._inside_step, 0)

    def speak_up(self) -> None:
        """Where the optimiser writes next: at the beginning of its step, or when its closure has gone backward."""
        if self.due and self._inside_step:
            self.do_what_is_due()

    def do_what_is_due(self) -> None:
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
        self.places.note(CallKind.STEP, calling_frame(), written_at(optimiser))
        self.recorders.tell("before_step", number)
        self.full_looks.before_step(held, closure=closure)
        self._phases.step()

    @contained
    def _after_step(self, optimiser: Optimizer) -> None:
        self._phases.step_end()
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
        if held.states.wasted:
            heard = heard._replace(counts={**heard.counts, CallKind.ERASED_BACKWARD: held.states.wasted})
        met = self.optimisers.stepped(held, optimiser, self.steps)
        notes: tuple[Note, ...] = () if met is None else (met,)
        training = CallKind.FORWARD_IN_EVAL not in heard.names
        if any(length > 1 for length in heard.lengths) or not training:
            notes += (functools.partial(heard.phases, self.steps, number),)
        notes += (*self.full_looks.take_notes(self.steps), *self.recorders.take())
        losses, self._losses = self._losses, []
        known = {"heard": heard, "places": self.places.take(), "unusual": self.switch.unusual, "phases": self._phases.take()}
        self._end_step(held, optimiser, losses, training, look, notes, **known)
        self.switch.heard(heard.counts)
        self.switch.prepare(held, training)

    def pass_step(self, held: Held, optimiser: Optimizer, losses: list[float | torch.Tensor], training: bool) -> None:
        """Of a step that the light listener heard. Most of them end here, and little else is done."""
        held.steps += 1
        held.written = None  # nobody looks who writes between these steps
        self.switch.light_steps += 1
        look: Look | None = None
        notes: tuple[Note, ...] = ()
        if self.full_looks.look is not None:
            look = self.timed(self.full_looks.after_step, held)
            notes = self.full_looks.take_notes(self.steps)
        self._end_step(held, optimiser, losses, training, look, notes)
        if self.steps >= self.switch.quiet_until:
            self.switch.prepare(held, training)

    def _end_step(
        self,
        held: Held,
        optimiser: Optimizer,
        losses: list[float | torch.Tensor],
        training: bool,
        look: Look | None,
        notes: tuple[Note, ...],
        **known: Any,
    ) -> None:
        """`known`: of a step that was heard in full, see Record."""
        seconds, own = self._stopwatch.step_ended(self.measured_seconds)
        loss, lr = mean_of(losses), rate_of(optimiser)
        record = Record(self.steps, held.number, loss, lr, seconds, training, look, notes, **known)
        self._recent.append(record)
        self._put(record, 0 if look is None else look.size)
        if look is not None or self.switch.full:
            self.looks += look is not None
            self._pace.step_ended(self.steps, seconds, looked=look is not None, own_seconds=own, heard=self.switch.full)
        self.steps += 1

    def resume(self, stepped: Held | None, backwards: int, losses: Sequence[float | torch.Tensor]) -> None:
        """Steps went by that the light listener heard; see ListenerSwitch.listen_fully."""
        self._losses = list(losses)
        if backwards:
            self.calls.say(CallKind.BACKWARD, backwards)
        self._phases.take()
        for held in self.optimisers.held:
            held.states.resume(stepped=held is stepped)
        self.recorders.tell("resumed")

    def _holding(self, optimiser: Optimizer) -> Held:
        held = self.optimisers.known(optimiser)
        assert held is not None
        return held

    def _end_of_calls(self, held: Held) -> None:
        """Several optimisers may stand on the same parameters; only the one that steps uses the gradient."""
        self.calls.say(held.states.step(reading=self._reading))
        self.measured_seconds += self.full_looks.note_seconds()
