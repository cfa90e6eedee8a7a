"""Where Keras comes by while it trains a model: its train and test functions are made, an epoch ends."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import keras

from sleuth.adapters.keras.patches import replaced

if TYPE_CHECKING:
    from sleuth.adapters.keras.watching.watching import KerasWatching


def listening(watching: "KerasWatching") -> ExitStack:
    stack = ExitStack()
    for owner, name, make in (
        (keras.Model, "make_train_function", _making),
        (keras.Model, "make_test_function", _asking),
        (keras.callbacks.CallbackList, "on_epoch_end", _ending),
    ):
        stack.enter_context(replaced(owner, name, make(watching)))
    return stack


Make = Callable[[Callable[..., Any]], Callable[..., Any]]


def _making(watching: "KerasWatching") -> Make:
    def making(plain: Callable[..., Any]) -> Callable[..., Any]:
        def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(model, *args, **kwargs)
            if model is watching.model:
                watching.take_over()
            return made

        return make_train_function

    return making


def _asking(watching: "KerasWatching") -> Make:
    def asking(plain: Callable[..., Any]) -> Callable[..., Any]:
        def make_test_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            if model is watching.model:
                watching.wake()
            return plain(model, *args, **kwargs)

        return make_test_function

    return asking


def _ending(watching: "KerasWatching") -> Make:
    def ending(plain: Callable[..., Any]) -> Callable[..., Any]:
        def on_epoch_end(callbacks: Any, epoch: int, logs: Any = None) -> Any:
            if getattr(callbacks, "_model", None) is watching.model:
                watching.hear_epoch(logs)
            return plain(callbacks, epoch, logs)

        return on_epoch_end

    return ending
