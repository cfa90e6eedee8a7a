"""Trainings are noticed from outside: Keras makes the function that takes their steps, or a loop applies an optimiser itself.

Runs inside the user's script: what goes wrong here ends the listening and is said; it never reaches the script.
"""

import functools
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import keras
from keras.src.optimizers.base_optimizer import BaseOptimizer

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.user_lines import noted
from sleuth.adapters.keras.watching.manual_loops import Loops
from sleuth.core.contract.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


class KerasDiscovery(Discovering):
    def __init__(self, begin: Callable[[Discovered], Attended], steps: int | None = None) -> None:
        self.trouble, self.missed = None, 0
        self._begin, self._most_steps = begin, steps
        self._followed: weakref.WeakKeyDictionary[Any, Attended] = weakref.WeakKeyDictionary()
        self._loops, self._depth = Loops(self._begin_loop, self._is_followed), 0
        self._patches = ExitStack()
        self._is_over = False
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        self._patches.enter_context(noted())
        self._patches.enter_context(replaced(keras.Model, "make_train_function", self._making))
        if backend.name() == "torch":
            self._patches.enter_context(replaced(BaseOptimizer, "apply", self._applying))

    def close(self) -> None:
        self._is_over = True  # somebody may have wrapped our function meanwhile, and call it still
        self._patches.close()
        self._followed.clear()
        self.trouble = self.trouble or self._loops.trouble

    def _making(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def make_train_function(model: Any, *args: Any, **kwargs: Any) -> Any:
            made = plain(model, *args, **kwargs)
            try:
                self._meet(model)
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            return made

        return make_train_function

    @property
    def _listens(self) -> bool:
        return not self._is_over and self.trouble is None and os.getpid() == self._process and backend.name() in backend.KNOWN

    def _meet(self, model: Any) -> None:
        if not self._listens:
            return
        if model not in self._followed and self._follow(model, model.optimizer) is None:
            return
        if self._most_steps is not None and not getattr(model.train_function, "__sleuth_counts__", False):
            model.train_function = self._counting(model.train_function)

    def _follow(self, model: Any, optimiser: Any) -> Attended | None:
        if len(self._followed) >= MOST_TRAININGS:
            self.missed += 1
            return None
        _leave_to_us()
        self._followed[model] = self._begin(Discovered(model, (optimiser,), model.name))
        return self._followed[model]

    def _applying(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        def apply(optimiser: Any, grads: Any, trainable_variables: Any = None) -> Any:
            # Optimisers that scale the loss call another one.
            if self._depth or not self._listens or torch.compiler.is_compiling():
                return plain(optimiser, grads, trainable_variables)
            given = trainable_variables if trainable_variables is None else list(trainable_variables)
            try:
                self._loops.applied(optimiser, lambda: optimiser._trainable_variables if given is None else given)
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
            self._leave_when_enough()
            self._depth = 1
            try:
                return plain(optimiser, grads, given)
            finally:
                self._depth = 0

        return apply

    def _begin_loop(self, model: Any, optimiser: Any) -> Attended | None:
        return self._follow(model, optimiser)

    def _is_followed(self, variables: Sequence[Any]) -> bool:
        wanted = {id(v) for v in variables}
        return any(not wanted.isdisjoint(id(v) for v in model.variables) for model in list(self._followed))

    def _counting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def train(*args: Any) -> Any:
            result = plain(*args)
            self._leave_when_enough()
            return result

        train.__dict__["__sleuth_counts__"] = True
        return train

    def _leave_when_enough(self) -> None:
        if self._most_steps is not None and sum(a.steps for a in self._followed.values()) >= self._most_steps:
            raise EnoughSteps


def _leave_to_us() -> None:
    """On the torch backend Keras' optimisers write weights as somebody would by hand: torch's own discovery need not wonder."""
    if backend.name() != "torch":
        return
    from sleuth.adapters.torch.watching import patches
    from sleuth.adapters.torch.watching.discovery import Discovery

    for listener in patches.LISTENERS:
        if isinstance(listener, Discovery):
            listener.forget_manual_updates()
