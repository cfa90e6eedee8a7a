"""What `evaluate` calls for every batch, with something of ours around it for a time; several may listen to one model.

On Keras' jax backend the model's calls are heard while the step is traced, and told at every batch like that one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras

from sleuth.adapters.keras.patches import contained_context, replaced
from sleuth.adapters.keras.user_lines import spot_now
from sleuth.adapters.keras.watching.modes import ModeHearing
from sleuth.adapters.listening.patches import attempt, tell
from sleuth.core.location import Spot

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.listener import KerasListener

Function = Callable[..., Any]


@dataclass(eq=False)
class Around:
    plain: Function
    heard: Function
    is_over: bool = False

    def __call__(self, *args: Any) -> Any:
        return (self.plain if self.is_over else self.heard)(*args)


@contextmanager
def around_test_function(model: Any, wrap: Callable[[Function], Function], failed: Callable[[Exception], None]) -> Iterator[None]:
    mine: list[Around] = []

    def making(plain: Function) -> Function:
        def make_test_function(this: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(this, *args, **kwargs)
            if this is model:
                attempt(failed, put_around)
            return made

        return make_test_function

    def put_around() -> None:
        function = model.test_function
        # Keras makes it once and asks for it again at every evaluation.
        if function is not None and not any(one in mine for one in _layers(function)):
            mine.append(Around(function, wrap(function)))
            model.test_function = mine[-1]

    with replaced(keras.Model, "make_test_function", making):
        try:
            yield
        finally:
            for one in mine:
                one.is_over = True
            outer = getattr(model, "test_function", None)
            inner = next((f for f in _layers(outer) if not isinstance(f, Around) or not f.is_over), None)
            if inner is not outer:
                model.test_function = inner


def _layers(function: Any) -> Iterator[Any]:
    while isinstance(function, Around):
        yield function
        function = function.plain
    yield function


class JaxEvaluations:
    """`evaluate` on jax: the modes of the model's calls."""

    def __init__(self, listener: "KerasListener") -> None:
        self._listener, self._model = listener, listener.model
        self._modes = ModeHearing(listener.model, self._called, listener.give_up)
        self._calls: list[tuple[bool, Spot | None]] = []  # of the model in one step: in training mode? from where?

    @contextmanager
    def listening(self) -> Iterator[None]:
        around = around_test_function(self._model, self._telling, self._listener.give_up)
        with replaced(type(self._model), "test_step", self._tracing), around:
            yield

    def _called(self, training: bool) -> None:
        self._calls.append((training, spot_now()))

    def _tracing(self, plain: Function) -> Function:
        def test_step(model: Any, *args: Any, **kwargs: Any) -> Any:
            if model is not self._model:
                return plain(model, *args, **kwargs)
            self._calls = []
            with contained_context(self._modes.listening, self._listener.give_up):
                return plain(model, *args, **kwargs)

        return test_step

    def _telling(self, plain: Function) -> Function:
        def test(*args: Any) -> Any:
            result = plain(*args)
            for training, spot in self._calls:
                tell((self._listener,), "model_called", self._modes, training, False, spot)
            return result

        return test
