"""Hears a training on Keras' jax backend: its step is compiled by us with its loss as one more result, and at some steps with its
gradients too."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.describing import number, plain
from sleuth.adapters.keras.jax_pass_listener import Listened
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import Function, contained_context, replaced
from sleuth.adapters.keras.sides import without_warnings
from sleuth.adapters.keras.watching.evaluating import JaxEvaluations
from sleuth.adapters.keras.watching.listener import KerasListener
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.step_record import Look
from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.patches import attempt, speak_up, tell
from sleuth.core.observation import Absent, NotFinite

KEY = "__sleuth__"  # in the logs; nobody but us ever sees it
SPREAD = "the training is spread over devices: its steps were only counted"
NOT_HEARD = "what layers and losses put out could not be heard in every step that was looked at"

Extra = tuple[list[Any], Any]  # losses and, where they are asked for, gradients of a step


class JaxListener(KerasListener):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._taken: list[tuple[Any, Any]] = []  # losses and gradients while a step is traced
        self._modes = ModeHearing(self.model, self._traced_call, self.give_up)
        self._calls: list[bool] = []  # of the model, while a step is traced: in training mode?
        self._differentiated = 0  # so often, in one step
        self._passes = Listened()
        self._evaluations = JaxEvaluations(self)
        self._wants_gradients = False
        self._before: tuple[list[np.ndarray], Hearing | None] | None = None  # a step that is looked at: weights, its pass

    def backend_patches(self) -> AbstractContextManager[Any]:
        return self._evaluations.listening()

    def step_function(self, made: Callable[..., Any]) -> Callable[..., Any]:
        told, model = (self,), self.model
        if keras.distribution.distribution() is not None:
            self.remarks.append(SPREAD)
            self._say(Absent(NotFinite, SPREAD))
            return self._counted(made)
        compiles = not model.run_eagerly and model.jit_compile
        heard, looked = (self._compiled(gradients, compiles) for gradients in (False, True))

        def step(state: Any, data: Any) -> Any:
            tell(told, "step_begins", state, data)
            try:
                logs, state = (looked if self._wants_gradients and self.gave_up is None else heard)(state, data)
            except BaseException as error:
                tell(told, "failed", error)
                raise
            logs = dict(logs)
            losses, gradients = logs.pop(KEY, ([], None))
            tell(told, "step_computed", losses, gradients)
            speak_up(told)
            tell(told, "step_over", state, losses, gradients)
            return logs, state

        function: Callable[..., Any] = model._make_function(step)
        return function

    def _counted(self, made: Callable[..., Any]) -> Callable[..., Any]:
        told = (self,)

        def step(state: Any, iterator: Any) -> Any:
            result = made(state, iterator)
            tell(told, "step_counted")
            return result

        return step

    # Told by the step.

    @contained
    def step_begins(self, state: Any, data: Any) -> None:
        self._before = None
        self._wants_gradients = False
        self.begin_step(data)
        if self.looks_now or self.alarms.every_step:
            self.read_rate(self._rate(state))
            self.is_weighted |= keras.utils.unpack_x_y_sample_weight(data)[2] is not None
            # Before the arrays are handed over to the step, which may write over them.
            self._before = [np.array(v) for v in state[0]], self._heard(state, data)
            self._wants_gradients = True

    @contained
    def step_computed(self, losses: list[Any], gradients: Any) -> None:
        if self.follows:
            self._replay_calls()
        self.before_step(losses, 1.0, gradients or (), self.model.trainable_variables if gradients else ())

    @contained
    def step_over(self, state: Any, losses: list[Any], gradients: Any) -> None:
        began = time.perf_counter()
        look = None if self._before is None else self._look(*self._before, state, gradients)
        self._before = None
        self.end_step(losses, look, began)

    @contained
    def step_counted(self) -> None:
        self.end_step((), None, time.perf_counter())

    # While a step is traced.

    def _traced_call(self, training: bool) -> None:
        self._calls.append(training)

    def _replay_calls(self) -> None:
        """Python hears a compiled step only while it is traced: each is like that one."""
        for training in self._calls:
            self._note_call(self._modes, training, graph=True)
        for _ in range(self._differentiated):
            self.calls.differentiated()

    def _compiled(self, gradients: bool, compiles: bool) -> Callable[..., Any]:
        model = self.model

        def step(state: Any, data: Any) -> Any:
            self._taken, self._calls = [], []
            with (
                contained_context(lambda: replaced(jax, "value_and_grad", self._differentiating), self.give_up),
                contained_context(self._modes.listening, self.give_up),
            ):
                logs, state = model.train_step(state, data)
            extra = attempt(self.give_up, self._extra, gradients, state[0])
            return {**logs, KEY: extra or ([], None)}, state

        # Where a bad step is to be stopped, the weights before it must still be there.
        given_away = () if self.alarms.every_step else (0,)
        return jax.jit(step, donate_argnums=given_away) if compiles else step

    def _extra(self, gradients: bool, variables: Any) -> Extra:
        taken, self._taken = self._taken, []
        self._differentiated = len(taken)
        found = [g for _, g in taken if _fits(g, variables)]
        return [loss for loss, _ in taken], found[0] if gradients and len(found) == 1 else None

    def _differentiating(self, plain_function: Function) -> Function:
        def value_and_grad(*args: Any, **kwargs: Any) -> Function:
            run = plain_function(*args, **kwargs)

            def differentiate(*given: Any, **options: Any) -> Any:
                value, gradients = run(*given, **options)
                attempt(self.give_up, self._differentiate, value, gradients, bool(kwargs.get("has_aux", False)))
                return value, gradients

            return differentiate

        return value_and_grad

    def _differentiate(self, value: Any, gradients: Any, with_more: bool) -> None:
        """Keras' own step differentiates a loss that may be scaled, and hands the plain one on beside it."""
        loss, more = value if with_more else (value, None)
        own = type(self.model).train_step is keras.Model.train_step
        self._taken.append((more[0] if own and isinstance(more, tuple) and more else loss, gradients))

    # Looks.

    def _heard(self, state: Any, data: Any) -> Hearing | None:
        """The same forward pass and loss once more: what it changes is thrown away. Not for the rest of a pass over the data,
        which would have to be compiled for."""
        model = self.model
        variables = (model.trainable_variables, model.non_trainable_variables, model.metrics_variables)
        given = ((state[0], state[1], state[3]), keras.utils.unpack_x_y_sample_weight(data))

        def compute(parts: Any) -> Any:
            values, (x, y, weights) = parts
            mapping = [pair for some, theirs in zip(variables, values, strict=True) for pair in zip(some, theirs, strict=True)]
            mode = {"training": True} if model._call_has_training_arg else {}
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
                model._compute_loss(x=x, y=y, y_pred=model(x, **mode), sample_weight=weights, training=True)

        try:
            if not self._passes.knows(None, given):
                return None
            hearing = Hearing(model)
            with without_warnings():
                self._passes.run(hearing, compute, given)
        except Exception as error:  # a step of the user's own may call the model otherwise
            self.lose(NOT_HEARD, f"{type(error).__name__}: {error}")
            return None
        return hearing

    def _rate(self, state: Any) -> float | None:
        optimiser = self.model.optimizer
        given = getattr(optimiser, "_learning_rate", None)
        places = {id(v): i for i, v in enumerate(optimiser.variables)}
        if isinstance(given, keras.Variable):
            return plain(float(np.asarray(state[2][places[id(given)]])))
        steps = np.asarray(state[2][places[id(optimiser.iterations)]])
        return plain(number(given(int(steps)))) if isinstance(given, keras.optimizers.schedules.LearningRateSchedule) else None

    def _look(self, before: list[np.ndarray], hearing: Hearing | None, state: Any, gradients: Any) -> Look:
        order, after = self.order(), [np.array(v) for v in state[0]]
        found = None if gradients is None else [np.array(backend.values(gradients[i])) for i in order]
        weights = [[values[i] for i in order] for values in (before, after)]
        return Look(self.paths, weights[0], weights[1], found, hearing, not self.gathers)


def _fits(gradients: Any, variables: Any) -> bool:
    """Of these variables, one for each?"""
    if not isinstance(gradients, list | tuple) or len(gradients) != len(variables):
        return False
    return all(getattr(g, "shape", None) == v.shape for g, v in zip(gradients, variables, strict=True))
