"""Hears one training of Keras': what both backends have in common. Patches tell it what goes on; a backend adds its own."""

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from types import FrameType
from typing import Any

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.describing import describe, rate_of, settings
from sleuth.adapters.keras.model_parts import trainable
from sleuth.adapters.keras.source_lines import compiled_with
from sleuth.adapters.keras.user_lines import LINE_LOST, noted
from sleuth.adapters.keras.watching.data_feeding import DataFeed
from sleuth.adapters.keras.watching.fit_patches import evaluations, fit_patches
from sleuth.adapters.keras.watching.kept_training import KeptTraining
from sleuth.adapters.keras.watching.lines import Lines
from sleuth.adapters.keras.watching.loop_calls import LoopCalls
from sleuth.adapters.keras.watching.memory import MemoryReadings
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.optimisers import HandedVariables, Optimisers
from sleuth.adapters.keras.watching.seen_batches import FirstBatches
from sleuth.adapters.keras.watching.step_record import Look, Record, numbers
from sleuth.adapters.listening.alarms import Alarms
from sleuth.adapters.listening.calls import NOTHING_HEARD
from sleuth.adapters.listening.listener import Listener, contained
from sleuth.adapters.listening.pace import FIRST_HEARD, Pace, Shares, Stopwatch
from sleuth.adapters.listening.recorder import Note, Recorders
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.location import Spot
from sleuth.core.observation import Modes
from sleuth.core.subject import Subject

OURS = "__sleuth_watched__"
SHARES = Shares(looking=0.5)

Put = Callable[[Sequence[Note], int], None]  # what a step left behind, and the bytes that it holds
Say = Callable[[Any], None]  # observations, or notes that become some


class KerasListener(Listener):
    def __init__(self, model: Any, optimiser: Any, pace: Pace, guard: Guard, put: Put, say: Say, *, keeps: bool) -> None:
        super().__init__()
        self.model, self._given = model, optimiser
        self.pace, self.alarms = pace, Alarms(guard)
        self._put, self._say = put, say
        self._stopwatch = Stopwatch()
        self._lr: float | None = None
        self.is_weighted = False  # the training's loss counts samples differently: validation is not to be compared with it
        self.calls = LoopCalls(say, self._now)
        self.feed, self.optimisers, self.handed = DataFeed(), Optimisers(model), HandedVariables(model)
        self._lines = Lines(model, say, self._now)
        self._kept = KeptTraining(model, self.feed, self._now, self.lose) if keeps else None
        memory = MemoryReadings(self._now, lambda: self.feed.passes)
        self._recorders = Recorders([FirstBatches(self._now), self._lines, *([self._kept] if self._kept else []), memory])
        self._mode: Modes | None = None
        self._training = True
        # Following the calls of a step costs as much as all else that is done at every step together: the first steps are
        # followed, then those that are looked at and the first one after something else went on.
        self.follows, self._follows_next = True, True
        self._held: frozenset[int] = frozenset()
        self._patches = ExitStack()
        self._plain: Any = None  # what Keras made to take a step
        self._is_open = False
        self.on_failure: Callable[[BaseException], None] = lambda error: None

    def open(self) -> None:
        self._is_open = True
        self._patches.enter_context(fit_patches(self))
        self._patches.enter_context(noted(lambda error: self.lose(LINE_LOST, f"{type(error).__name__}: {error}")))
        if self._kept is not None:
            self._patches.enter_context(self._kept.listening())
        self._patches.enter_context(self.backend_patches())
        if self.model.train_function is not None:
            self._take_over()

    @contained
    def close(self) -> None:
        self._recorders.tell("close")
        self._say(self._recorded_notes())
        self._say_left_out()
        self.calls.close()

    def remove_patches(self) -> None:
        self._is_open = False
        try:
            self._patches.close()
        finally:
            if self._plain is not None and getattr(self.model.train_function, OURS, None) is self:
                self.model.train_function = self._plain
            self._plain = None

    @abstractmethod
    def backend_patches(self) -> AbstractContextManager[Any]: ...

    @abstractmethod
    def step_function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Ours in the place of what Keras made to take a step."""

    # Told by patches.

    @contained
    def train_function_made(self) -> None:
        self._take_over()

    @contained
    def evaluation_begins(self) -> None:
        self.follow_next()

    @contained
    def epoch_ended(self, logs: Any) -> None:
        self.follow_next()
        self._lr = None
        for evaluation in evaluations(logs, self.steps, weighted=self.is_weighted):
            self._say(evaluation)

    @contained
    def batch_read(self, iterator: Any, found: Any, seconds: float) -> None:
        self.feed.read(iterator, found[0], seconds)

    @contained
    def rate_set(self, optimiser: Any, frame: FrameType) -> None:
        self._lines.rate_set(optimiser, frame)

    @contained
    def model_called(self, modes: ModeHearing, training: bool, graph: bool, spot: Spot | None = None) -> None:
        """`spot`: not now, but from there."""
        self._note_call(modes, training, graph, spot)

    def failed(self, error: BaseException) -> None:
        """A step of the user's raised; Keras tells no callback of it."""
        self.follow_next()
        self.on_failure(error)

    def speak_up(self) -> None:
        self.alarms.speak_up()

    # What the backends use.

    def lose(self, what: str, why: str) -> None:
        """Something of ours failed that the listening does without: the report says it once."""
        if not any(remark.startswith(what) for remark in self.remarks):
            self.remarks.append(f"{what}: {why}")

    def begin_step(self, data: Any) -> None:
        """On this batch. Are its calls followed? Only `fit` says when a step begins, and when something else goes on."""
        self.follows = self._follows_next or self.looks_now or self.steps < FIRST_HEARD or self.feed.reader is None
        self._follows_next = False
        self._recorders.tell("batch", self.feed.reader, data)

    def follow_next(self) -> None:
        """Something happens that is no step: the one that comes next is followed."""
        self._follows_next = self.follows = True

    @property
    def looks_now(self) -> bool:
        return self.gave_up is None and self.pace.looks_at(self.steps)

    def before_step(self, losses: Sequence[Any], scale: float, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Before anything is written: what the user asked for."""
        if not self.alarms.every_step:
            self.alarms.ask(self.steps)
            return
        loss = next((value for value in numbers(losses, scale) if not math.isfinite(value)), None)
        # An optimiser that scales the loss leaves out steps with gradients that are not finite itself.
        named = self._named(gradients, variables) if scale == 1.0 else ()
        self.alarms.before_step(self.steps, loss, named)

    def end_step(
        self,
        losses: Sequence[Any],
        look: Look | None,
        began: float,
        optimiser: Any = None,
        variables: Sequence[Any] = (),
        *,
        scale: float = 1.0,
    ) -> None:
        """`began`: when the method that tells of this was called."""
        if self._kept is not None and not self.steps:
            self._kept.first_losses, self._kept.scale = tuple(losses), scale
        seconds, own = self._stopwatch.step_ended(self.measured_seconds + time.perf_counter() - began)
        stepping = self.optimiser if optimiser is None else optimiser
        all_of_them = lambda: variables or self.model.trainable_variables  # noqa: E731
        lane, told = self.optimisers.stepping(stepping, all_of_them, self.steps, self.feed.passes)
        if told is not None:
            self._say(told)
        record = Record(
            self.steps,
            tuple(losses),
            self._lr,
            seconds,
            look,
            None if look is None else compiled_with(self.model, "loss"),
            self.calls.stepped() if self.follows else NOTHING_HEARD,
            lane,
            self._training,
            scale,
            self.feed.taken(),
        )
        self._recorders.tell("after_step", lane)
        self._put((*self._recorded_notes(), record.observations), record.bytes)
        self.pace.step_ended(self.steps, seconds, looked=look is not None, own_seconds=own, heard=self.follows)
        self.looks += look is not None
        self.steps += 1

    def read_rate(self, rate: float | None = None) -> None:
        self._lr = rate if rate is not None else rate_of(self.optimiser)

    def holds(self, variables: Sequence[Any]) -> bool:
        """Are some of them this model's?"""
        if not any(id(v) in self._held for v in variables):
            self._held = frozenset(id(v) for v in self.model.variables)
        return any(id(v) in self._held for v in variables)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(held.path for held in trainable(self.model))

    def order(self) -> list[int]:
        """Where each of `paths` stands among the model's trainable variables."""
        places = {id(v): i for i, v in enumerate(self.model.trainable_variables)}
        return [places[id(held.variable)] for held in trainable(self.model)]

    @property
    def gathers(self) -> bool:
        return bool(getattr(self.optimiser, "gradient_accumulation_steps", None))

    @property
    def optimiser(self) -> Any:
        """The compiled one, else the one that was given: a loop of one's own needs no compile."""
        return getattr(self.model, "optimizer", None) or self._given

    def take_kept(self) -> Kept | None:
        kept, self._kept = self._kept, None
        return None if kept is None or self.gave_up is not None else kept.kept()

    # Our own.

    def _now(self) -> int:
        return self.steps

    def _take_over(self) -> None:
        """From now on our function takes the steps; it calls what Keras made, or the same with more results."""
        function = self.model.train_function
        if not self._is_open or function is None or getattr(function, OURS, None) is self:
            return
        self._describe()
        ours = self.step_function(function)
        setattr(ours, OURS, self)
        self._plain, self.model.train_function = function, ours
        self._stopwatch.step_ended(self.measured_seconds)

    def _describe(self) -> None:
        """Once more, now that all variables are there and the model is compiled."""
        if self.optimiser is not None:
            self.optimisers.meet(self.optimiser)
            self._lines.begun_by(self.optimiser)
        if self._kept is not None:
            self._kept.begin(self.optimiser)
        subject = Subject(self.model, None, optimizer=self.optimiser)
        self._say(describe(subject))
        self._say(settings(subject))

    def _say_left_out(self) -> None:
        left = self.handed.left_out()
        if not left:
            return
        found = describe(Subject(self.model, None, optimizer=self.optimiser))
        paths = {held.path for held in trainable(self.model) if id(held.variable) in left}
        parameters = tuple(replace(p, optimised=False) if p.path in paths else p for p in found.parameters)
        self._say(replace(found, parameters=parameters))
        self._lines.left_out(self.handed.spot)

    def _note_call(self, modes: ModeHearing, training: bool, graph: bool, spot: Spot | None = None) -> None:
        self.calls.forward(training=training, graph=graph, spot=spot)
        if graph:
            self._training = training
        elif modes.wired is not None:
            self._lines.wired_in(modes.wired)
        found = modes.latest(self.steps, root=training, graph=graph)
        if self._mode is None or replace(found, step=self._mode.step) != self._mode:
            self._mode = found
            self._say(found)

    def _named(self, gradients: Sequence[Any], variables: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        paths = {id(held.variable): held.path for held in trainable(self.model)}
        for gradient, variable in zip(gradients, variables, strict=False):
            if gradient is not None:
                yield paths.get(id(variable)) or variable.path.replace("/", "."), backend.values(gradient)

    def _recorded_notes(self) -> tuple[Note, ...]:
        """What recorders have for the rest of sleuth; and those of them that failed are named."""
        notes = self._recorders.take()
        self.remarks += self._recorders.failed
        self._recorders.failed = []
        return notes
