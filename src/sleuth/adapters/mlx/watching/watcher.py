"""A watch of a module: what its gradients, optimisers, compiled steps and calls say of the loop around it."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.recorder import observations_of
from sleuth.adapters.listening.steps import mean_loss
from sleuth.adapters.mlx import created_at
from sleuth.adapters.mlx.arrays import arrays_in, first_array, values
from sleuth.adapters.mlx.describing import schedule_of
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.adapters.mlx.source_lines import function_line
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.array_names import Names, weights
from sleuth.adapters.mlx.watching.batches import arrays_by_path
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.differentiated import Differentiated
from sleuth.adapters.mlx.watching.full_look import Look
from sleuth.adapters.mlx.watching.listeners import COMPILING
from sleuth.adapters.mlx.watching.look_copy import LookCopy, backward_of
from sleuth.adapters.mlx.watching.loop_calls import Clipping
from sleuth.adapters.mlx.watching.modes import SeenModes
from sleuth.adapters.mlx.watching.optimisers import Optimisers
from sleuth.adapters.mlx.watching.output_spread import SeenSpread
from sleuth.adapters.mlx.watching.pending_steps import Record
from sleuth.adapters.mlx.watching.recorder import Gradient
from sleuth.adapters.mlx.watching.step_watcher import Batches, StepWatcher
from sleuth.adapters.mlx.watching.stepped_parameters import SteppedParameters
from sleuth.adapters.mlx.watching.training_data import TrainingData
from sleuth.adapters.mlx.watching.unreached_parameters import UnreachedParameters
from sleuth.core.contract.guard import Guard
from sleuth.core.observation import Absent, Call, NotFinite, Observation, Pending
from sleuth.core.observation.calls import CallKind

COMPILED_BEFORE = (
    "the step was compiled by mx.compile before the watch began, and what happens in it cannot be heard: open the watch before, "
    "or use sleuth run"
)
GRADIENTS_INSIDE = "the step is compiled: gradients inside it are not seen"
ASSERTIONS = "assertions on layers are not looked at in MLX: a layer's output is not computed when it returns"


class Watcher(StepWatcher):
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
        self._alarms = Alarms(guard or Guard())
        self._data, self._stepped = TrainingData(keeps=keeps), SteppedParameters(model)
        reach = UnreachedParameters(lambda: self._data.kept)
        spread = SeenSpread(lambda: self._data.loss_line)
        # What is kept is put together first: the others ask for it.
        recorders = (self._data, SeenModes(), spread, self._stepped, reach)
        super().__init__(model, put, recorders, every=1 if self._alarms.every_step else every, overhead=overhead)
        self.remarks = [ASSERTIONS] if self._alarms.guard.expectations else []
        self._optimisers = Optimisers(list(optimisers), model)
        self._names = Names(model)
        self._differentiating = 0
        self._clipping = Clipping()
        self._stop_calls: Callable[[], None] = lambda: None

    def open(self) -> None:
        super().open()
        assert self.model is not None
        self._stop_calls = patches.listen_to_calls(self.model, self.hear_call, self.hear_answer)

    def close(self) -> None:
        self._stop_calls()
        super().close()
        self._optimisers.close()
        self._clipping = Clipping()

    def _at_end(self, model: nn.Module) -> Iterator[Observation]:
        self._recorders.tell("ended", model, next(iter(self._optimisers.alive), None))
        self.kept, self.left = self._data.kept, self._data.take_batches()
        yield from observations_of(self._recorders.take())
        yield from self._calls.places.values()
        for on, line in created_at.mode_lines(model).items():
            yield Call(CallKind.TRAIN if on else CallKind.EVAL, self.steps, line)
        if (narrowed := created_at.narrowing_line(model)) is not None:
            yield Call(CallKind.NARROWED, self.steps, narrowed)
        yield from self._calls.take_notes()
        heard = self._calls.heard()
        yield from heard.phases(self.steps, 0, last=True, alone=(CallKind.VALIDATE,))
        counts: dict[str, int] = {"backward": self.backwards, "forward": self.backwards} if self.backwards else {}
        idle = {0: self.backwards} if len(self._optimisers) and self.steps == 0 and self.backwards else {}
        yield Pending(self.steps, heard.names, counts, len(self._optimisers), idle)

    @contained
    def hear_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Of the model. Inside a gradient it is told by that."""
        if self.model is None:
            return
        if COMPILING:
            COMPILING[-1].reading.call(self.model, args, kwargs)
            return
        if self._differentiating:
            self._recorders.tell("forward", args, kwargs)
            return
        self._recorders.tell("asked", args, kwargs, self.steps)
        kind = CallKind.VALIDATE_IN_TRAIN if self.model.training else CallKind.VALIDATE
        if self._calls.last != kind:
            self._recorders.tell("called", self.model, self.steps, False)
        self._calls.say_at(kind, self.steps)
        given = next(iter((*args, *kwargs.values())), None)
        self._calls.note_input(given if isinstance(given, mx.array) else None)

    @contained
    def hear_answer(self, output: Any) -> None:
        """Of a call that was heard."""
        if not self._differentiating and not COMPILING:
            self._recorders.tell("output", output)

    @contained
    def hear_gradient_begin(self, taken: Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._differentiating += 1
        if self.model is None or (taken.model is not None and taken.model is not self.model):
            return
        self._pending.decide_last()
        self._optimisers.gradient_begins()
        if self._look is None and self._pace.looks_at(self.steps):
            self._look = Look()
        self._calls.say_at(CallKind.FORWARD if self.model.training else CallKind.FORWARD_IN_EVAL, self.steps)
        again = None if taken.fun is None else functools.partial(taken.fun, *taken.of_the_users(args), **kwargs)
        self._recent.add(self.steps, args[0] if args else None, again, (args, kwargs))
        looked, optimisers = self._look is not None, self._optimisers.alive
        # Recorders listen first, so that what is heard around it is not on their tape.
        gradient = Gradient(self.steps, self.model, taken, args, kwargs, looked, optimisers, self._hearing)
        self._recorders.tell("gradient_begins", gradient)
        if self._look is not None:
            self._recorders.tell("called", self.model, self.steps, True)
            self._look.again = again
            self._look.hearings.append(Hearing(self.model))
            self._hearing.enter_context(self._look.hearings[-1].listening())

    @contained
    def hear_gradient_failed(self) -> None:
        self._differentiating = max(self._differentiating - 1, 0)
        self._hearing.close()
        self._recorders.tell("backward_failed", None)

    @contained
    def hear_gradient(self, taken: Differentiated, value: Any, gradients: Any) -> None:
        self._differentiating = max(self._differentiating - 1, 0)
        self._hearing.close()
        if taken.model is not self.model and (taken.model is not None or not self._names.is_known(gradients)):
            self._look = None if self._look is not None and not self._losses else self._look
            return
        self.backwards += 1
        self._calls.say_at(CallKind.BACKWARD, self.steps)
        loss = first_array(value)
        loss = loss if loss is not None and loss.size == 1 else None
        self._recorders.tell("backward_end", loss)
        if self._look is not None:
            self._look.raw = self._names.named(gradients)
            self._recorders.tell("gradients", self._look.raw)
            if loss is not None and (part := backward_of(loss, self._look.hearings[-1].losses, self._look.raw)) is not None:
                self._look.parts.append(part)
        if loss is not None:
            self._losses.append(loss)

    @contained
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
        if not self._differentiating:
            self._recorders.tell("loss", name, args, kwargs, returned)

    @contained
    def hear_clip(self, gradients: Any) -> None:
        self._calls.say_at(self._clipping.clipped(gradients), self.steps)

    @contained
    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if not self._is_mine(target, gradients):
            return
        self._stepped.begins(target)
        self._optimisers.begins(optimiser)
        if not self._clipping.stepped(gradients):
            self._calls.correct(CallKind.CLIP, CallKind.CLIP_UNUSED)
            self._calls.place(CallKind.CLIP_UNUSED, self._calls.places.get(CallKind.CLIP))
        look = self._look
        if look is not None:
            look.gradients = self._names.named(gradients, self._stepped.path_of(target) or "")
            look.before = weights(self.model)
            look.losses = list(self._losses)
            # Without the user's wish nothing is computed before the step: then the look says it, a moment later.
            if self._alarms.every_step and look.compute():
                loss = mean_loss(float(loss.item()) for loss in look.losses)
                self._alarms.before_step(self.steps, loss, ((path, values(g)) for path, g in look.gradients.items()))
        self._alarms.ask(self.steps)

    @contained
    def hear_step(self, optimiser: Optimizer, target: Any, after: Any) -> None:
        if not self._is_mine(target, after):
            return
        self._calls.say_at(CallKind.STEP, self.steps)
        if after is not None:
            self._calls.place(CallKind.RETURNS_WEIGHTS, self._calls.places.get(CallKind.STEP))
        self._stepped_by(optimiser, lambda: self._names.named(after) if after is not None else weights(self.model))

    def speak_up(self) -> None:
        self._alarms.speak_up()

    @contained
    def hear_compiled_begin(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if step.model is not self.model or self.model is None or step.optimiser is None:
            return
        self._recorders.tell("compiled_begins", self.steps, self.model, step.optimiser)
        if self._pace.looks_at(self.steps):
            self._look = Look(before=weights(self.model))

    @contained
    def hear_compiled(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is not self.model or self.model is None or step.optimiser is None:
            return
        self._pending.decide_last()
        loss = next((a for a in arrays_in(result) if a.size == 1 and mx.issubdtype(a.dtype, mx.floating)), None)
        self._losses = [] if loss is None else [loss]
        # In the mode that it was read in: that of the model may be another by now.
        kind = CallKind.FORWARD if step.training else CallKind.FORWARD_IN_EVAL
        notes: list[Observation] = [Absent(NotFinite, GRADIENTS_INSIDE)] if kind not in self._calls.places else []
        if kind not in self._calls.places and bool(self.model.training) == step.training:
            self._recorders.tell("called", self.model, self.steps, True)
        for said in (kind, CallKind.BACKWARD, CallKind.STEP):
            self._calls.say_at(said, self.steps)
        self._recorders.tell("compiled", self.steps, step, args, kwargs, self._look is not None)
        self._stepped_by(step.optimiser, lambda: weights(self.model), notes)

    @contained
    def hear_compiled_question(self, asked: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function that only asks the model: of what happens in it nothing is seen."""
        paths = asked.reading.asked.get(id(self.model))
        if paths is not None and asked.model is None and not self._differentiating:
            self._recorders.tell("asked_inside", dict(arrays_by_path((args, kwargs))), paths, self.steps)

    def _stepped_by(
        self, optimiser: Optimizer, after: Callable[[], dict[str, mx.array]], notes: Sequence[Observation] = ()
    ) -> None:
        number, told = self._optimisers.number(optimiser), list(notes)
        met = self._optimisers.stepped(optimiser, self.steps, after)
        if met is not None:
            told.append(met)
            if (schedule := schedule_of(optimiser)) is not None:
                line = created_at.line_of(schedule) or function_line(schedule)
                told.append(Call(CallKind.MADE_SCHEDULER, self.steps, line, number))
        self._end_step(optimiser, number, after, told)

    def _looked(self, look: Look, optimiser: Optimizer | None, number: int, notes: list[Observation]) -> LookCopy | None:
        copy = super()._looked(look, optimiser, number, notes)
        if copy is None:
            self.remark(COMPILED_BEFORE)
        return copy

    def _take_batches(self) -> Batches:
        return self._data.take_batches()

    def _is_mine(self, target: Any, tree: Any) -> bool:
        if isinstance(target, nn.Module):
            return self.model is not None and self._stepped.path_of(target) is not None
        return self._names.is_known(tree)
