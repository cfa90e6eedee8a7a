"""One watch of a Keras training."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from sleuth.adapters.keras import backend, crash
from sleuth.adapters.keras.describing import describe, rate_of, settings
from sleuth.adapters.keras.model_parts import trainable
from sleuth.adapters.keras.source_lines import compiled_with
from sleuth.adapters.keras.user_lines import Spot, noted
from sleuth.adapters.keras.watching import train_function
from sleuth.adapters.keras.watching.alarms import Alarms
from sleuth.adapters.keras.watching.data_feeding import Fed
from sleuth.adapters.keras.watching.epochs import evaluations
from sleuth.adapters.keras.watching.first_batches import Batches, Described
from sleuth.adapters.keras.watching.kept_training import Keeper
from sleuth.adapters.keras.watching.lines import Lines
from sleuth.adapters.keras.watching.loop_calls import Calls
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.note_queue import Waiting
from sleuth.adapters.keras.watching.optimisers import Given, Optimisers
from sleuth.adapters.keras.watching.pace import Pace, Vigil
from sleuth.adapters.keras.watching.process_memory import Readings
from sleuth.adapters.keras.watching.record import Look, Record
from sleuth.core.contract.adapter import Watching
from sleuth.core.contract.guard import Guard
from sleuth.core.contract.kept import Kept
from sleuth.core.observation import Modes, Observation
from sleuth.core.subject import Subject

OURS = "__sleuth_watched__"


class KerasWatching(Watching):
    def __init__(
        self,
        model: Any,
        optimisers: Sequence[Any] = (),
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> None:
        backend.require_known()
        self.model = model
        self._given = optimisers[0] if optimisers else None
        self.pace = Pace(every=every, overhead=overhead)
        self.guard = guard or Guard()
        self.own_seconds, self.steps, self.looks, self.dropped = 0.0, 0, 0, 0
        self.trouble, self.remarks = None, ()
        self.is_weighted = False  # the training's loss counts samples differently: validation is not to be compared with it
        self._queue = Waiting()
        self._waiting: deque[Any] = self._queue.notes
        self._lr: float | None = None
        self.calls = Calls(self._waiting, lambda: self.steps)
        self._fed, self._memory, self.optimisers = Fed(), Readings(self._waiting), Optimisers(model)
        self._batches, self.lines = Batches(), Lines(model, self._waiting, lambda: self.steps)
        self._alarms = Alarms(model, self.guard, lambda: self.steps)
        self.given = Given(model)
        self._keeper = Keeper(model, self._fed, lambda: self.steps) if keeps else None
        self._mode: Modes | None = None
        self._training = True
        self._vigil, self.awake = Vigil(), True
        self._held: frozenset[int] = frozenset()
        self._patches = ExitStack()
        self._plain: Any = None  # what Keras made to take a step
        self._began = time.perf_counter()
        self._open = False
        self.on_failure: Callable[[BaseException], None] = lambda error: None

    def open(self) -> None:
        self._open = True
        self._patches.enter_context(train_function.listening(self))
        self._patches.enter_context(noted())
        self._patches.enter_context(self._fed.listening())
        self._patches.enter_context(self.lines.listening())
        if self._keeper is not None:
            self._patches.enter_context(self._keeper.listening())
        self._prepare()
        if self.model.train_function is not None:
            self.take_over()

    def _prepare(self) -> None:
        if backend.name() == "torch":
            from sleuth.adapters.keras.watching.torch_step import TorchStep

            self._stepping: Any = TorchStep(self)
        else:
            from sleuth.adapters.keras.watching.jax_step import JaxStep

            self._stepping = JaxStep(self)
        self._patches.enter_context(self._stepping.listening())

    def close(self) -> None:
        self._open = False
        self._patches.close()
        self._note_batches(self._batches.told())
        self._note_left_out()
        self.calls.closed(self.steps)
        self._memory.close()
        if self._plain is not None and getattr(self.model.train_function, OURS, None) is self:
            self.model.train_function = self._plain
        self._plain = None

    def _note_left_out(self) -> None:
        left = self.given.left_out()
        if not left:
            return
        try:
            found = describe(Subject(self.model, None, optimizer=self.optimiser))
            paths = {held.path for held in trainable(self.model) if id(held.variable) in left}
            parameters = tuple(replace(p, optimised=False) if p.path in paths else p for p in found.parameters)
            self._waiting.append(replace(found, parameters=parameters))
            self.lines.left_out(self.given.spot)
        except Exception as error:
            self.give_up(error)

    def take_over(self) -> None:
        """From now on our function takes the steps; it calls what Keras made, or the same with more results."""
        function = self.model.train_function
        if not self._open or function is None or getattr(function, OURS, None) is self:
            return
        self._plain = function
        self._describe()
        ours = self._stepping.function(function)
        setattr(ours, OURS, self)
        self.model.train_function = ours
        self._began = time.perf_counter()

    def _describe(self) -> None:
        """Once more, now that all variables are there and the model is compiled."""
        try:
            if self.optimiser is not None:
                self.optimisers.meet(self.optimiser)
                self.lines.begun_by(self.optimiser)
            if self._keeper is not None:
                self._keeper.begin(self.optimiser)
            subject = Subject(self.model, None, optimizer=self.optimiser)
            self._waiting += [describe(subject), settings(subject)]
        except Exception as error:
            self.give_up(error)

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

    def read_rate(self, rate: float | None = None) -> None:
        self._lr = rate if rate is not None else rate_of(self.optimiser)

    def give_up(self, error: Exception) -> None:
        """Something of ours failed: the training goes on without us."""
        self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    def failed(self, error: BaseException) -> None:
        """A step of the user's raised; Keras tells no callback of it."""
        with contextlib.suppress(Exception):
            self.wake()
            self.on_failure(error)

    def called(self, modes: ModeHearing, *, training: bool, graph: bool, spot: Spot | None = None) -> None:
        """The model was; `spot`: not now, but from there."""
        self.calls.forward(training=training, graph=graph, spot=spot)
        if graph:
            self._training = training
        elif modes.wired is not None:
            self.lines.wired_in(modes.wired)
        found = modes.latest(self.steps, root=training, graph=graph)
        if self._mode is None or replace(found, step=self._mode.step) != self._mode:
            self._mode = found
            self._waiting.append(found)

    def fed(self, data: Any) -> None:
        """A step is about to be taken on this batch."""
        try:
            if not self._batches.is_over:
                self._note_batches(self._batches.note(self.steps, data))
            self.lines.fed_by(self._fed.reader)
        except Exception as error:
            self.give_up(error)
        if self._keeper is not None:
            self._keeper.hear(self._keeper.trained_on, data)

    def _note_batches(self, found: Described | None) -> None:
        if found is not None:
            self._waiting.append(found)

    def take_kept(self) -> Kept | None:
        keeper, self._keeper = self._keeper, None
        return None if keeper is None or self.trouble is not None else keeper.kept()

    def holds(self, variables: Sequence[Any]) -> bool:
        """Are some of them this model's?"""
        if not any(id(v) in self._held for v in variables):
            self._held = frozenset(id(v) for v in self.model.variables)
        return any(id(v) in self._held for v in variables)

    def about_to_step(self, losses: Sequence[Any], scale: float, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        """Before anything is written: what the user asked for."""
        self._alarms.before_step(losses, scale, gradients, variables)

    def begins_step(self) -> bool:
        """Are the calls of this one followed? Only `fit` says when a step begins, and when something else goes on."""
        looks = self.trouble is None and self.pace.looks_at(self.steps)
        self.awake = self._vigil.follows(self.steps, looks=looks) or self._fed.reader is None
        return self.awake

    def wake(self) -> None:
        self._vigil.wake()
        self.awake = True
        self._stepping.wake()

    def ended(
        self,
        losses: Sequence[Any],
        look: Look | None,
        own_seconds: float,
        optimiser: Any = None,
        variables: Sequence[Any] = (),
        *,
        scale: float = 1.0,
    ) -> None:
        """A step is over."""
        if self._keeper is not None and not self.steps:
            self._keeper.first_losses, self._keeper.scale = tuple(losses), scale
        began, now = self._began, time.perf_counter()
        self._began = now
        self._queue.add(
            self._record(losses, look, now - began, self.optimiser if optimiser is None else optimiser, variables, scale)
        )
        self.dropped = self._queue.dropped
        self._memory.after_step(self.steps, self._fed.passes)
        self.pace.ended(self.steps, now - began, looked=look is not None, own_seconds=own_seconds)
        self.own_seconds += own_seconds
        self.looks += look is not None
        self.steps += 1

    def _record(
        self, losses: Sequence[Any], look: Look | None, seconds: float, optimiser: Any, variables: Sequence[Any], scale: float
    ) -> Record:
        all_of_them = lambda: variables or self.model.trainable_variables  # noqa: E731
        lane, told = self.optimisers.stepping(optimiser, all_of_them, self.steps, self._fed.passes)
        if told is not None:
            self._waiting.append(told)
        calls, counts = self.calls.stepped() if self.awake else ((), {})
        compiled = None if look is None else compiled_with(self.model, "loss")
        waited = {"step": seconds, **self._fed.taken()}
        return Record(self.steps, tuple(losses), self._lr, waited, look, compiled, calls, counts, lane, self._training, scale)

    def hear_epoch(self, logs: Any) -> None:
        self.wake()
        try:
            self._lr = None
            self._waiting += evaluations(logs, self.steps, weighted=self.is_weighted)
        except Exception as error:
            self.give_up(error)

    def drain(self) -> list[Observation]:
        found = self._queue.drain()
        self.remarks = (self._queue.lost,) if self._queue.lost else self.remarks
        return found

    def explain(self, error: BaseException) -> list[Observation]:
        return crash.explain(error, self.model, self.steps)
