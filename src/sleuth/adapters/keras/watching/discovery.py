"""Trainings are noticed from outside: Keras makes the function that takes their steps.

Runs inside the user's script: what goes wrong here ends the listening and is said; it never reaches the script.
"""

import functools
import os
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import keras

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.patching import replaced
from sleuth.adapters.keras.places import noted
from sleuth.core.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


class KerasDiscovery(Discovering):
    def __init__(self, begin: Callable[[Discovered], Attended], steps: int | None = None) -> None:
        self.trouble, self.missed = None, 0
        self._begin, self._most_steps = begin, steps
        self._followed: weakref.WeakKeyDictionary[Any, Attended] = weakref.WeakKeyDictionary()
        self._patches = ExitStack()
        self._is_over = False
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        self._patches.enter_context(noted())
        self._patches.enter_context(replaced(keras.Model, "make_train_function", self._making))

    def close(self) -> None:
        self._is_over = True  # somebody may have wrapped our function meanwhile, and call it still
        self._patches.close()
        self._followed.clear()

    def _making(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(model, *args, **kwargs)
            try:
                self._meet(model)
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            return made

        return make_train_function

    def _meet(self, model: Any) -> None:
        if self._is_over or self.trouble is not None or os.getpid() != self._process or backend.name() not in backend.KNOWN:
            return
        if model not in self._followed:
            if len(self._followed) >= MOST_TRAININGS:
                self.missed += 1
                return
            _leave_to_us()
            self._followed[model] = self._begin(Discovered(model, (model.optimizer,), model.name))
        if self._most_steps is not None and not getattr(model.train_function, "__sleuth_counts__", False):
            model.train_function = self._counting(model.train_function)

    def _counting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def train(*args: Any) -> Any:
            result = plain(*args)
            if self._most_steps is not None and sum(a.steps for a in self._followed.values()) >= self._most_steps:
                raise EnoughSteps
            return result

        train.__dict__["__sleuth_counts__"] = True
        return train


def _leave_to_us() -> None:
    """On the torch backend Keras' optimisers write weights as somebody would by hand: torch's own discovery need not wonder."""
    if backend.name() != "torch":
        return
    from sleuth.adapters.torch.watching import taps
    from sleuth.adapters.torch.watching.discovery import Discovery

    for listener in taps.LISTENERS:
        if isinstance(listener, Discovery):
            listener._forget_hands()
