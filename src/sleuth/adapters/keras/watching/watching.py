"""One watch of a Keras training."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import keras

from sleuth.adapters.keras import backend, crash
from sleuth.adapters.keras.anatomy import trainable
from sleuth.adapters.keras.describing import describe, rate_of, settings
from sleuth.adapters.keras.patching import replaced
from sleuth.adapters.keras.places import compiled_at
from sleuth.adapters.keras.watching.pace import Pace
from sleuth.adapters.keras.watching.record import Look, Record, number
from sleuth.core.adapter import Watching
from sleuth.core.guard import Alarm, Guard
from sleuth.core.observation import Evaluation, Observation, Split
from sleuth.core.subject import Subject

# Steps that may wait. Looks hold copies of all weights: fewer of those.
MOST_WAITING = 4096
MOST_BYTES_WAITING = 256 << 20
OURS = "__sleuth_watched__"


class KerasWatching(Watching):
    def __init__(self, model: Any, *, every: int | None, overhead: float, guard: Guard | None = None) -> None:
        backend.require_known()
        self.model = model
        self.pace = Pace(every=every, overhead=overhead)
        self.guard = guard or Guard()
        self.own_seconds, self.steps, self.looks, self.dropped = 0.0, 0, 0, 0
        self.trouble, self.remarks = None, ()
        self.is_weighted = False  # the training's loss counts samples differently: validation is not to be compared with it
        self._waiting: deque[Record | Observation] = deque()
        self._bytes = 0
        self._lr: float | None = None
        self._patches = ExitStack()
        self._plain: Any = None  # what Keras made to take a step
        self._began = time.perf_counter()
        self._open = False
        self.on_failure: Callable[[BaseException], None] = lambda error: None

    def open(self) -> None:
        self._open = True
        watching = self

        def making(plain: Callable[..., Any]) -> Callable[..., Any]:
            def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
                made = plain(model, *args, **kwargs)
                if model is watching.model:
                    watching.take_over()
                return made

            return make_train_function

        def ending(plain: Callable[..., Any]) -> Callable[..., Any]:
            def on_epoch_end(callbacks: Any, epoch: int, logs: Any = None) -> Any:
                if getattr(callbacks, "_model", None) is watching.model:
                    watching.hear_epoch(logs)
                return plain(callbacks, epoch, logs)

            return on_epoch_end

        self._patches.enter_context(replaced(keras.Model, "make_train_function", making))
        self._patches.enter_context(replaced(keras.callbacks.CallbackList, "on_epoch_end", ending))
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
        if self._plain is not None and getattr(self.model.train_function, OURS, None) is self:
            self.model.train_function = self._plain
        self._plain = None

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
            subject = Subject(self.model, None, optimizer=self.model.optimizer)
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
        return bool(getattr(self.model.optimizer, "gradient_accumulation_steps", None))

    def read_rate(self, rate: float | None = None) -> None:
        self._lr = rate if rate is not None else rate_of(self.model.optimizer)

    def give_up(self, error: Exception) -> None:
        """Something of ours failed: the training goes on without us."""
        self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    def failed(self, error: BaseException) -> None:
        """A step of the user's raised; Keras tells no callback of it."""
        with contextlib.suppress(Exception):
            self.on_failure(error)

    def ended(self, losses: Sequence[Any], look: Look | None, own_seconds: float) -> None:
        """A step is over."""
        began, now = self._began, time.perf_counter()
        self._began = now
        record = Record(self.steps, tuple(losses), self._lr, now - began, look, compiled_at(self.model))
        self.pace.ended(self.steps, now - began, looked=look is not None, own_seconds=own_seconds)
        self.own_seconds += own_seconds
        self.looks += look is not None
        self.steps += 1
        size = 0 if look is None else look.bytes
        if len(self._waiting) >= MOST_WAITING or (size and self._bytes + size > MOST_BYTES_WAITING):
            self.dropped += 1
        else:
            self._bytes += size
            self._waiting.append(record)
        self._alarm(record)

    def _alarm(self, record: Record) -> None:
        """What the user asked for happens after the step: Keras takes loss and step in one go."""
        alarms = []
        if self.guard.every_gradient and (value := number(record.losses)) is not None and value != value + 0 * value:
            alarms.append(Alarm("loss-not-finite", record.step, f"the loss of step {record.step} is {value}"))
        while self.guard.asked:
            found = self.guard.asked.popleft()
            alarms.append(Alarm(found.name, record.step, found.summary, finding=found))
        for alarm in alarms:
            act = self.guard.tell(alarm)
            if act is not None:
                act.do()

    def hear_epoch(self, logs: Any) -> None:
        try:
            self._lr = None
            named = {str(k): _plain(v) for k, v in (logs or {}).items()}
            for split, prefix in ((Split.VALIDATION, "val_"), (Split.TRAIN, "")):
                mine = {
                    k.removeprefix("val_"): v for k, v in named.items() if k.startswith("val_") == bool(prefix) and v is not None
                }
                # What Keras calls the loss of an epoch is the mean over all its steps: the steps themselves are known.
                if split is Split.TRAIN or self.is_weighted:
                    mine.pop("loss", None)
                mine.pop("learning_rate", None)
                if mine:
                    self._waiting.append(Evaluation(self.steps, split, mine, logged=True))
        except Exception as error:
            self.give_up(error)

    def drain(self) -> list[Observation]:
        found: list[Observation] = []
        for _ in range(len(self._waiting)):
            waiting = self._waiting.popleft()
            if isinstance(waiting, Record):
                self._bytes -= 0 if waiting.look is None else waiting.look.bytes
                found += self._observed(waiting)
            else:
                found.append(waiting)
        return found

    def _observed(self, record: Record) -> list[Observation]:
        try:
            return list(record.observations())
        except Exception as error:
            self.remarks = (f"notes of a step were lost: {type(error).__name__}: {error}",)
            return []

    def explain(self, error: BaseException) -> list[Observation]:
        return crash.explain(error, self.model, self.steps)


def _plain(value: Any) -> float | None:
    try:
        return float(backend.values(value)) if backend.is_array(value) else float(value)
    except (TypeError, ValueError):
        return None
