"""What `evaluate` asks the model on Keras' jax backend: heard while its step is traced, and told at every batch like that one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.user_lines import Spot, spot_now
from sleuth.adapters.keras.watching.asked_inputs import around_test_function
from sleuth.adapters.keras.watching.modes import ModeHearing

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.watching import KerasWatching


class JaxAsking:
    def __init__(self, watching: "KerasWatching") -> None:
        self._watching, self._model = watching, watching.model
        self._modes = ModeHearing(watching.model, self._called)
        self._calls: list[tuple[bool, Spot | None]] = []  # of the model in one step: in training mode? from where?

    @contextmanager
    def listening(self) -> Iterator[None]:
        with replaced(type(self._model), "test_step", self._tracing), around_test_function(self._model, self._telling):
            yield

    def _called(self, training: bool) -> None:
        self._calls.append((training, spot_now()))

    def _tracing(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def test_step(model: Any, *args: Any, **kwargs: Any) -> Any:
            if model is not self._model:
                return plain(model, *args, **kwargs)
            self._calls = []
            with self._modes.listening():
                return plain(model, *args, **kwargs)

        return test_step

    def _telling(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def test(*args: Any) -> Any:
            result = plain(*args)
            try:
                for training, spot in self._calls:
                    self._watching.called(self._modes, training=training, graph=False, spot=spot)
            except Exception as error:
                self._watching.give_up(error)
            return result

        return test
