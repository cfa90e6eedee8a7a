"""One watch of a loop in MLX: notes what its steps do, looks at some in full, and hands both on.

Runs inside the user's training: nothing here may raise, touch numbers or random states, or have anything computed but once at a
step that is looked at.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx import created_at
from sleuth.adapters.mlx.arrays import arrays_in, first_array
from sleuth.adapters.mlx.describing import rate_of, schedule_of
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.source_lines import function_line
from sleuth.adapters.mlx.state import single
from sleuth.adapters.mlx.watching import full_look, patches
from sleuth.adapters.mlx.watching.accumulations import backward_of
from sleuth.adapters.mlx.watching.alarms import Alarms
from sleuth.adapters.mlx.watching.array_names import Names, weights
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.clipping import Clipping
from sleuth.adapters.mlx.watching.contained import contained
from sleuth.adapters.mlx.watching.growing_graphs import Graphs
from sleuth.adapters.mlx.watching.loop_calls import Story
from sleuth.adapters.mlx.watching.losses import LAG
from sleuth.adapters.mlx.watching.model_calls import calls_heard
from sleuth.adapters.mlx.watching.modes import SeenModes
from sleuth.adapters.mlx.watching.not_heard import ASSERTIONS, COMPILED
from sleuth.adapters.mlx.watching.optimisers import Optimisers
from sleuth.adapters.mlx.watching.output_spread import Spreading
from sleuth.adapters.mlx.watching.pace import Clock, Pace
from sleuth.adapters.mlx.watching.pending_steps import Waiting
from sleuth.adapters.mlx.watching.process_memory import ProcessMemory
from sleuth.adapters.mlx.watching.recent_steps import Recent
from sleuth.adapters.mlx.watching.record import Record
from sleuth.adapters.mlx.watching.stepped_parameters import Stepped
from sleuth.adapters.mlx.watching.training_data import Material
from sleuth.adapters.mlx.watching.unreached_parameters import Reach
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Call, Observation, Pending
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection


class Watcher(patches.Listener):
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
        self.model: nn.Module | None = model
        self._alarms = Alarms(guard or Guard())
        self._optimisers = Optimisers(list(optimisers), model)
        self._pace = Pace(every=1 if self._alarms.every_step else every, overhead=overhead)
        self.steps = self.looks = self.backwards = 0
        self.own_seconds = 0.0
        self.gave_up: Exception | None = None
        self.deaf: list[str] = [ASSERTIONS] if self._alarms.guard.expectations else []
        self._names, self._stepped = Names(model), Stepped(model)
        self._look: full_look.Look | None = None
        self._hearing = ExitStack()
        self._differentiating = 0
        self._losses: list[mx.array] = []
        self._story = Story()
        self._made_places: list[Call] = []
        self._last: list[Observation] = []  # to be told at the end
        self._modes = SeenModes()
        self._recent = Recent()
        self._waiting = Waiting(put, lambda step, value: self._recent.broken(step, value, self.model))
        self._reach, self._spreading = Reach(), Spreading()
        self._clipping = Clipping()
        self._graphs = Graphs()
        self._memory = ProcessMemory()
        self._material = Material(keeps=keeps)
        self.kept: Kept | None = None
        self.left: tuple[tuple[int, Parts], ...] = ()  # batches whose facts nobody took
        self._connection: Connection | None = None
        self._deafen: Callable[[], None] = lambda: None
        self._clock = Clock()

    def open(self) -> None:
        patches.join(self)
        assert self.model is not None
        self._deafen = calls_heard(self.model, self.hear_call, self.hear_answer)

    def close(self) -> None:
        self._deafen()
        patches.leave(self)
        self._hearing.close()
        self._memory.close()
        self._put_by()
        self.model, self._look = None, None
        self._losses, self._clipping = [], Clipping()
        self._optimisers.close()
        if self.gave_up is not None:
            self.gave_up.__traceback__ = None

    @contained
    def _put_by(self) -> None:
        self._waiting.close()
        self._recent.clear()
        if self.model is not None:
            modes = created_at.mode_lines(self.model)
            self._made_places += [Call("train" if on else "eval", self.steps, line) for on, line in modes.items()]
            self._made_places += [Call("narrowed", self.steps, line) for line in (created_at.narrowing_line(self.model),) if line]
            self._last += self._material.evaluations(self.model)
            spread = self._spreading.told(self._material.loss_line)
            self._last += [] if spread is None else [spread]
            left_out = self._stepped.architecture(self.model, next(iter(self._optimisers.alive), None))
            self._last += [] if left_out is None else [left_out]
            self.kept = self._material.close(self.model)
            self.left = self._material.take()
            self._connection = self._reach.connection(self.model, self.kept)

    def last_words(self) -> Iterator[Observation]:
        if self._connection is not None:
            yield self._connection
        yield from self._story.places.values()
        yield from self._made_places
        yield from self._last
        yield from self._story.notes
        yield from self._story.calls.phases(self.steps, 0, last=True)
        counts = {"backward": self.backwards, "forward": self.backwards}
        idle = {0: self.backwards} if len(self._optimisers) and self.steps == 0 and self.backwards else {}
        calls = tuple(self._story.calls.names)
        yield Pending(self.steps, calls, counts if self.backwards else {}, len(self._optimisers), idle)

    def give_up(self, error: Exception) -> None:
        self.gave_up = self.gave_up or error
        self._hearing.close()

    @contained
    def hear_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Of the model. Inside a gradient it is told by that."""
        if self.model is None:
            return
        if patches.is_compiling():
            patches.COMPILING[-1].reading.call(self.model, args, kwargs)
            return
        if self._differentiating:
            self._material.called(args, kwargs)
            return
        self._material.asked(args, kwargs, self.steps)
        kind = "validate-in-train" if self.model.training else "validate"
        if self._story.calls.last != kind:
            self._story.notes += self._modes.news(self.model, self.steps + 1, graph=False)
        self._story.say(kind, self.steps + 1)
        self._story.calls.note_input((*args, *kwargs.values()))

    @contained
    def hear_answer(self, output: Any) -> None:
        """Of a call that was heard."""
        if not self._differentiating and not patches.is_compiling():
            self._material.answered(output)

    @contained
    def hear_gradient_begin(self, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._differentiating += 1
        if taken.model is not None and taken.model is not self.model:
            return
        self._waiting.decide_last()
        self._optimisers.gradient_begins()
        assert self.model is not None
        if self._look is None and self._pace.looks_at(self.steps):
            self._look = full_look.Look()
        self._story.say("forward" if self.model.training else "forward-in-eval", self.steps + 1)
        again = None if taken.fun is None else functools.partial(taken.fun, *taken.of_the_users(args), **kwargs)
        self._recent.add(self.steps + 1, args[0] if args else None, again, (args, kwargs))
        self._material.gradient_begins(self.steps + 1, taken, args, kwargs, looked=self._look is not None)
        if self._look is not None:
            tape = self._material.recording(self.steps + 1, self.model, self._optimisers.alive)
            if tape is not None:
                self._hearing.enter_context(tape.listening())  # first, so that what is heard around it is not on it
            self._story.notes += self._modes.news(self.model, self.steps + 1, graph=True)
            self._look.again = again
            hearing = Hearing(self.model)
            self._look.hearings.append(hearing)
            self._hearing.enter_context(hearing.listening())

    @contained
    def hear_gradient_failed(self) -> None:
        self._differentiating = max(self._differentiating - 1, 0)
        self._hearing.close()
        self._material.failed()

    @contained
    def hear_gradient(self, taken: patches.Differentiated, value: Any, gradients: Any) -> None:
        self._differentiating = max(self._differentiating - 1, 0)
        self._hearing.close()
        if taken.model is not self.model and (taken.model is not None or not self._names.is_known(gradients)):
            self._look = None if self._look is not None and not self._losses else self._look
            return
        self.backwards += 1
        self._story.say("backward", self.steps + 1)
        self._material.gradient_ended()
        loss = first_array(value)
        loss = loss if loss is not None and loss.size == 1 else None
        if self._look is not None:
            self._look.raw = self._names.named(gradients)
            self._reach.before(self._look.raw)
            if loss is not None and (part := backward_of(loss, self._look.hearings[-1], self._look.raw)) is not None:
                self._look.parts.append(part)
        if loss is not None:
            self._losses.append(loss)

    @contained
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
        if not self._differentiating:
            self._material.loss(args, kwargs)

    @contained
    def hear_clip(self, gradients: Any) -> None:
        self._story.say(self._clipping.clipped(gradients), self.steps + 1)

    @contained
    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if not self._is_mine(target, gradients):
            return
        self._stepped.begins(target)
        self._optimisers.begins(optimiser)
        if not self._clipping.stepped(gradients):
            self._story.calls.correct("clip", "clip-unused")
            self._story.place("clip-unused", self._story.places.get("clip"))
        if self._look is not None:
            self._look.gradients = self._names.named(gradients, self._stepped.path_of(target) or "")
            self._look.before = weights(self.model)
            self._stepped.looked(self._look.gradients, self._look.before)
            self._look.losses = list(self._losses)
            self._alarms.look(self._look, self.steps + 1)
        self._alarms.ask(self.steps + 1)

    @contained
    def hear_step(self, optimiser: Optimizer, target: Any, after: Any) -> None:
        if not self._is_mine(target, after):
            return
        self._story.say("step", self.steps + 1)
        if after is not None:
            self._story.place("returns-weights", self._story.places.get("step"))
        self._end_step(optimiser, lambda: self._names.named(after) if after is not None else weights(self.model))

    def speak_up(self) -> None:
        self._alarms.speak_up()

    @contained
    def hear_compiled_begin(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if step.model is not self.model or self.model is None or step.optimiser is None:
            return
        self._material.compiled_begins(self.steps + 1, self.model, step.optimiser)
        if self._pace.looks_at(self.steps):
            self._look = full_look.Look(before=weights(self.model))

    @contained
    def hear_compiled(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is not self.model or step.optimiser is None:
            return
        self._waiting.decide_last()
        loss = next((a for a in arrays_in(result) if a.size == 1 and mx.issubdtype(a.dtype, mx.floating)), None)
        self._losses = [] if loss is None else [loss]
        self._tell_compiled(step)
        self._material.compiled(self.steps + 1, args, kwargs, step.tape, looked=self._look is not None)
        self._end_step(step.optimiser, lambda: weights(self.model))

    def _tell_compiled(self, step: patches.Compiled) -> None:
        """What happens in it, in the mode that it was read in: that of the model may be another by now."""
        kind = "forward" if step.training else "forward-in-eval"
        if kind not in self._story.places and self.model is not None and bool(self.model.training) == step.training:
            self._story.notes += self._modes.news(self.model, self.steps + 1, graph=True)
        for what in (kind, "backward", "step"):
            self._story.say(what, self.steps + 1)

    @contained
    def hear_compiled_question(self, asked: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function that only asks the model: of what happens in it nothing is seen."""
        paths = asked.reading.asked.get(id(self.model))
        if paths is not None and asked.model is None and not self._differentiating:
            self._material.asked_inside(dict(arrays_by_path((args, kwargs))), paths, self.steps)

    def _end_step(self, optimiser: Optimizer, changed: Callable[[], dict[str, mx.array]]) -> None:
        """`changed` walks through the whole model: only where somebody wants to know."""
        now = time.perf_counter()
        self.steps += 1
        look, self._look = self._look, None
        number = self._optimisers.number(optimiser)
        met = self._optimisers.stepped(optimiser, self.steps, changed)
        if met is not None and (schedule := schedule_of(optimiser)) is not None:
            self._story.notes.append(
                Call("made-scheduler", self.steps, created_at.line_of(schedule) or function_line(schedule), number)
            )
        found = (met, self._memory.after_step(self.steps), self._graphs.after_step(self.steps))
        notes: list[Observation] = [*self._story.notes, *(o for o in found if o is not None)]
        notes += self._story.calls.phases(self.steps, number)
        looked = look is not None and self._looked(look, optimiser, changed(), notes)
        record = Record(
            self.steps,
            number,
            tuple(self._losses),
            None if not looked else rate_of(optimiser),
            tuple(self._story.calls.names),
            dict(self._story.calls.counts),
            self._clock.since(now),
            tuple(notes),
            batches=self._material.take() if looked else (),
            training=self.model is None or bool(self.model.training),
            state="computed" if looked else "new",
        )
        self._losses = []
        self._story.clear()
        self._waiting.add(record)
        self._waiting.hand_on(0 if looked else LAG)
        seconds, own = self._clock.step_ended(now, self.own_seconds)
        self._pace.step_ended(self.steps, seconds, looked=looked, own_seconds=own)

    def _looked(self, look: full_look.Look, optimiser: Optimizer, changed: dict[str, mx.array], notes: list[Observation]) -> bool:
        look.losses = list(self._losses)
        look.after = changed
        look.held = list(self._waiting.held_losses())
        look.held += [a for one in single(optimiser) if isinstance(a := one._state.get("learning_rate"), mx.array)]
        if not look.compute():
            self.deaf = [COMPILED]
            self._losses = []
            return False
        assert self.model is not None
        self._waiting.computed()
        notes += full_look.observations(look, self.steps, self.model, self._optimisers.number(optimiser))
        if look.raw:
            self._reach.after(look.raw, look.hearings)
        self._spreading.looked(look.hearings, self.steps)
        self._waiting.learn(look.loss_bytes())
        notes += self._material.looked(look, self.steps)
        self.looks += 1
        return True

    def _is_mine(self, target: Any, tree: Any) -> bool:
        if isinstance(target, nn.Module):
            return self.model is not None and self._stepped.path_of(target) is not None
        return self._names.is_known(tree)
