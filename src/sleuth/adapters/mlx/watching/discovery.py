"""Trainings are noticed from outside: the first gradient of a model, or the first step of an optimiser, begins one."""

import os
import weakref
from collections.abc import Callable
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.trees.discovery import TreeDiscovery
from sleuth.adapters.mlx.trees.tree import Named
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.array_names import variable_of
from sleuth.core.contract.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

# Whoever makes a model anew at every step is not followed into each of them.
MOST_TRAININGS = 16


class MlxDiscovery(patches.Listener, Discovering):
    def __init__(self, begin: Callable[[Discovered], Attended], steps: int | None = None) -> None:
        self.trouble = None
        self.missed = 0
        self._begin, self._most_steps = begin, steps
        self._made: list[weakref.ref[Optimizer]] = []
        self._followed: list[tuple[weakref.ref[nn.Module], Attended]] = []
        self._trees = TreeDiscovery(begin, self._owns)
        self._steps_before = 0
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        patches.join(self)
        patches.join(self._trees)

    def close(self) -> None:
        patches.leave(self)
        patches.leave(self._trees)
        self.trouble = self.trouble or self._trees.trouble
        self.missed, self._trees.missed = self.missed + self._trees.missed, 0
        self._followed.clear()

    def hear_made(self, optimiser: Optimizer) -> None:
        if not any(ref() is optimiser for ref in self._made):
            self._made.append(weakref.ref(optimiser))

    def hear_gradient_begin(self, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        waiting = [o for ref in self._made if (o := ref()) is not None]
        if taken.model is not None and waiting:
            self._meet(taken.model, waiting, lambda watcher: watcher.hear_gradient_begin(taken, args, kwargs))

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if isinstance(target, nn.Module):
            self._meet(target, [optimiser], lambda watcher: watcher.hear_step_begin(optimiser, target, gradients))

    def hear_compiled(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is not None and step.optimiser is not None:
            self._meet(step.model, [step.optimiser], lambda watcher: watcher.hear_compiled(step, args, kwargs, result))

    def step_taken(self) -> None:
        steps = self._trees.steps + self._steps_before + sum(attended.steps for _, attended in self._followed)
        if os.getpid() == self._process and self._most_steps is not None and steps >= self._most_steps:
            raise EnoughSteps

    def _owns(self, weights: Named) -> bool:
        """Are these the weights of a model that is followed?"""
        own = {id(e.array) for ref, _ in self._followed if (model := ref()) is not None for e in parameters(model)}
        return any(id(array) in own for array in weights.values())

    def _meet(self, model: nn.Module, optimisers: list[Optimizer], tell: Callable[[patches.Listener], None]) -> None:
        try:
            self._follow(model, optimisers, tell)
        except Exception as error:
            self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    def _follow(self, model: nn.Module, optimisers: list[Optimizer], tell: Callable[[patches.Listener], None]) -> None:
        if self.trouble is not None or os.getpid() != self._process or any(_holds(ref(), model) for ref, _ in self._followed):
            return
        for followed in [f for f in self._followed if f[0]() is None]:  # its model is gone
            self._followed.remove(followed)
            self._steps_before += followed[1].steps
            followed[1].end()
        if len(self._followed) >= MOST_TRAININGS:
            self.missed += 1
            return
        before = len(patches.LISTENERS)
        attended = self._begin(Discovered(model, tuple(optimisers), variable_of(model) or type(model).__name__))
        self._followed.append((weakref.ref(model), attended))
        for watcher in patches.LISTENERS[before:]:  # it came too late to hear what it was opened for
            tell(watcher)


def _holds(followed: nn.Module | None, model: nn.Module) -> bool:
    """A step may be taken of a part of a model."""
    return followed is model or (followed is not None and any(module is model for _, module in modules(followed)))
