"""A step of Keras' jax backend: compiled by us with its loss as one more result, and at some steps with its gradients too."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.describing import number, plain
from sleuth.adapters.keras.jax_pass_listener import Listened
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.sides import quiet
from sleuth.adapters.keras.watching.jax_asked_inputs import JaxAsking
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.keras.watching.record import Look

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.watching import KerasWatching

KEY = "__sleuth__"  # in the logs; nobody but us ever sees it


class JaxStep:
    def __init__(self, watching: "KerasWatching") -> None:
        self._watching = watching
        self._taken: list[tuple[Any, Any]] = []  # losses and gradients while a step is traced
        self._modes = ModeHearing(watching.model, self._called)
        self._calls: list[bool] = []  # of the model, while a step is traced: in training mode?
        self._differentiated = 0  # so often, in one step
        self._listened = Listened()
        self._asking = JaxAsking(watching)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with self._asking.listening():
            yield

    def wake(self) -> None:
        """What is compiled is heard while it is traced."""

    def function(self, made: Callable[..., Any]) -> Callable[..., Any]:
        watching, model = self._watching, self._watching.model
        if keras.distribution.distribution() is not None:
            watching.remarks = ("the training is spread over devices: its steps were only counted",)
            return self._counted(made)
        compiles = not model.run_eagerly and model.jit_compile
        heard, looked = (self._compiled(gradients, compiles) for gradients in (False, True))

        def step(state: Any, data: Any) -> Any:
            awake = watching.begins_step()
            looks = watching.trouble is None and (watching.pace.looks_at(watching.steps) or watching.guard.every_gradient)
            began = time.perf_counter()
            watching.fed(data)
            first = self._before(state, data) if looks else None
            own = time.perf_counter() - began
            try:
                logs, state = (looked if looks else heard)(state, data)
            except BaseException as error:
                watching.failed(error)
                raise
            began = time.perf_counter()
            logs = dict(logs)
            losses, gradients = logs.pop(KEY, ([], None))
            if awake:
                self._replay_calls()
            watching.about_to_step(losses, 1.0, gradients or (), model.trainable_variables if gradients else ())
            look = self._after(first, state, gradients) if first is not None else None
            watching.ended(losses, look, own + time.perf_counter() - began)
            return logs, state

        function: Callable[..., Any] = model._make_function(step)
        return function

    def _counted(self, made: Callable[..., Any]) -> Callable[..., Any]:
        def step(state: Any, iterator: Any) -> Any:
            result = made(state, iterator)
            self._watching.ended((), None, 0.0)
            return result

        return step

    def _called(self, training: bool) -> None:
        self._calls.append(training)

    def _replay_calls(self) -> None:
        """Python hears a compiled step only while it is traced: each is like that one."""
        for training in self._calls:
            self._watching.called(self._modes, training=training, graph=True)
        for _ in range(self._differentiated):
            self._watching.calls.differentiated()

    def _compiled(self, gradients: bool, compiles: bool) -> Callable[..., Any]:
        model = self._watching.model

        def step(state: Any, data: Any) -> Any:
            self._taken, self._calls = [], []
            with replaced(jax, "value_and_grad", self._differentiating), self._modes.listening():
                logs, state = model.train_step(state, data)
            taken, self._taken = self._taken, []
            self._differentiated = len(taken)
            found = [g for _, g in taken if _fits(g, state[0])]
            extra = ([loss for loss, _ in taken], found[0] if gradients and len(found) == 1 else None)
            return {**logs, KEY: extra}, state

        # Where a bad step is to be stopped, the weights before it must still be there.
        given_away = () if self._watching.guard.every_gradient else (0,)
        return jax.jit(step, donate_argnums=given_away) if compiles else step

    def _differentiating(self, plain_function: Callable[..., Any]) -> Callable[..., Any]:
        def value_and_grad(*args: Any, **kwargs: Any) -> Callable[..., Any]:
            run = plain_function(*args, **kwargs)
            with_more = bool(kwargs.get("has_aux", False))

            def differentiate(*given: Any, **options: Any) -> Any:
                value, gradients = run(*given, **options)
                self._taken.append((self._plain_loss(value, with_more), gradients))
                return value, gradients

            return differentiate

        return value_and_grad

    def _plain_loss(self, value: Any, with_more: bool) -> Any:
        """Keras' own step differentiates a loss that may be scaled, and hands the plain one on beside it."""
        loss, more = value if with_more else (value, None)
        own = type(self._watching.model).train_step is keras.Model.train_step
        return more[0] if own and isinstance(more, tuple) and more else loss

    def _before(self, state: Any, data: Any) -> tuple[list[np.ndarray], Hearing | None] | None:
        """Before the arrays are handed over to the step, which may write over them."""
        try:
            self._watching.read_rate(self._rate(state))
            self._watching.is_weighted |= keras.utils.unpack_x_y_sample_weight(data)[2] is not None
            return [np.array(v) for v in state[0]], self._heard(state, data)
        except Exception as error:
            self._watching.give_up(error)
            return None

    def _heard(self, state: Any, data: Any) -> Hearing | None:
        """The same forward pass and loss once more: what it changes is thrown away. Not for the rest of a pass over the data,
        which would have to be compiled for."""
        model = self._watching.model
        variables = (model.trainable_variables, model.non_trainable_variables, model.metrics_variables)
        given = ((state[0], state[1], state[3]), keras.utils.unpack_x_y_sample_weight(data))

        def compute(parts: Any) -> Any:
            values, (x, y, weights) = parts
            mapping = [pair for some, theirs in zip(variables, values, strict=True) for pair in zip(some, theirs, strict=True)]
            mode = {"training": True} if model._call_has_training_arg else {}
            with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
                model._compute_loss(x=x, y=y, y_pred=model(x, **mode), sample_weight=weights, training=True)

        try:
            if not self._listened.knows(None, given):
                return None
            hearing = Hearing(model)
            with quiet():
                self._listened.run(hearing, compute, given)
        except Exception:  # a step of the user's own may call the model otherwise
            return None
        return hearing

    def _rate(self, state: Any) -> float | None:
        optimiser = self._watching.model.optimizer
        given = getattr(optimiser, "_learning_rate", None)
        places = {id(v): i for i, v in enumerate(optimiser.variables)}
        if isinstance(given, keras.Variable):
            return plain(float(np.asarray(state[2][places[id(given)]])))
        steps = np.asarray(state[2][places[id(optimiser.iterations)]])
        return plain(number(given(int(steps)))) if isinstance(given, keras.optimizers.schedules.LearningRateSchedule) else None

    def _after(self, first: tuple[list[np.ndarray], Hearing | None], state: Any, gradients: Any) -> Look | None:
        watching = self._watching
        try:
            before, hearing = first
            order, after = watching.order(), [np.array(v) for v in state[0]]
            found = None if gradients is None else [np.array(backend.values(g)) for g in gradients]
            picked = [[values[i] for i in order] for values in (before, after)]
            in_order = None if found is None else [found[i] for i in order]
            return Look(watching.paths, picked[0], picked[1], in_order, hearing, not watching.gathers)
        except Exception as error:
            watching.give_up(error)
            return None


def _fits(gradients: Any, variables: Any) -> bool:
    """Of these variables, one for each?"""
    if not isinstance(gradients, list | tuple) or len(gradients) != len(variables):
        return False
    return all(getattr(g, "shape", None) == v.shape for g, v in zip(gradients, variables, strict=True))
