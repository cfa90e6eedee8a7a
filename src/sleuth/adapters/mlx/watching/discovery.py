"""Trainings are noticed from outside: the first gradient of a model, or the first step of an optimiser, begins one."""

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.watching import taps
from sleuth.core.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps
from sleuth.core.place import is_users

# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


class MlxDiscovery(taps.Listener, Discovering):
    def __init__(self, begin: Callable[[Discovered], Attended], steps: int | None = None) -> None:
        self.trouble = None
        self.missed = 0
        self._begin, self._most_steps = begin, steps
        self._made: list[weakref.ref[Optimizer]] = []
        self._followed: list[tuple[weakref.ref[nn.Module], Attended]] = []
        self._steps_before = 0
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        taps.join(self)

    def close(self) -> None:
        taps.leave(self)
        self._followed.clear()

    def hear_made(self, optimiser: Optimizer) -> None:
        if not any(ref() is optimiser for ref in self._made):
            self._made.append(weakref.ref(optimiser))

    def hear_gradient_begin(self, taken: taps.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        waiting = [o for ref in self._made if (o := ref()) is not None]
        if taken.model is not None and waiting:
            self._meet(taken.model, waiting, lambda watcher: watcher.hear_gradient_begin(taken, args, kwargs))

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if isinstance(target, nn.Module):
            self._meet(target, [optimiser], lambda watcher: watcher.hear_step_begin(optimiser, target, gradients))

    def hear_compiled(self, step: taps.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is not None and step.optimiser is not None:
            self._meet(step.model, [step.optimiser], lambda watcher: watcher.hear_compiled(step, args, kwargs, result))

    def step_taken(self) -> None:
        steps = self._steps_before + sum(attended.steps for _, attended in self._followed)
        if os.getpid() == self._process and self._most_steps is not None and steps >= self._most_steps:
            raise EnoughSteps

    def _meet(self, model: nn.Module, optimisers: list[Optimizer], tell: Callable[[taps.Listener], None]) -> None:
        try:
            self._follow(model, optimisers, tell)
        except Exception as error:
            self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    def _follow(self, model: nn.Module, optimisers: list[Optimizer], tell: Callable[[taps.Listener], None]) -> None:
        if self.trouble is not None or os.getpid() != self._process or any(ref() is model for ref, _ in self._followed):
            return
        for followed in [f for f in self._followed if f[0]() is None]:  # its model is gone
            self._followed.remove(followed)
            self._steps_before += followed[1].steps
            followed[1].end()
        if len(self._followed) >= MOST_TRAININGS:
            self.missed += 1
            return
        before = len(taps.LISTENERS)
        attended = self._begin(Discovered(model, tuple(optimisers), _name_of(model)))
        self._followed.append((weakref.ref(model), attended))
        for watcher in taps.LISTENERS[before:]:  # it came too late to hear what it was opened for
            tell(watcher)


def _name_of(model: nn.Module) -> str:
    """The variable that holds it where it is at work, else its class."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            for name, value in (*frame.f_locals.items(), *frame.f_globals.items()):
                if value is model and not name.startswith("_"):
                    return str(name)
        frame = frame.f_back
    return type(model).__name__
