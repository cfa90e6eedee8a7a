"""Trainings are noticed from outside: the first gradient of a model, or the first step of an optimiser, begins one."""

import weakref
from typing import Any

import mlx.nn as nn
from mlx.optimizers import Optimizer

from sleuth.adapters.listening.discovery import Begin, Discovery
from sleuth.adapters.mlx.model_parts import modules, parameters
from sleuth.adapters.mlx.trees.discovery import TreeDiscovery
from sleuth.adapters.mlx.trees.tree import Named
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.array_names import variable_of
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.differentiated import Differentiated
from sleuth.adapters.mlx.watching.listeners import Events
from sleuth.core.contract.adapter import Attended


class MlxDiscovery(Discovery, Events):
    """A watch that it opens joins the listeners, and is told the event that it was opened for after this one."""

    def __init__(self, begin: Begin, steps: int | None = None) -> None:
        super().__init__(begin, steps)
        self._made: list[weakref.ref[Optimizer]] = []
        self._followed: list[tuple[weakref.ref[nn.Module], Attended]] = []
        self._trees = TreeDiscovery(self, self._owns)

    def open(self, *, found_already: bool = False) -> None:
        patches.join(self)
        patches.join(self._trees)

    def close(self) -> None:
        patches.leave(self)
        patches.leave(self._trees)
        self._followed.clear()

    def hear_made(self, optimiser: Optimizer) -> None:
        if not any(ref() is optimiser for ref in self._made):
            self._made.append(weakref.ref(optimiser))

    def hear_gradient_begin(self, taken: Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        waiting = [o for ref in self._made if (o := ref()) is not None]
        if taken.model is not None and waiting:
            self._follow(taken.model, waiting)

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if isinstance(target, nn.Module):
            self._follow(target, [optimiser])

    def hear_compiled(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is not None and step.optimiser is not None:
            self._follow(step.model, [step.optimiser])

    def _owns(self, weights: Named) -> bool:
        """Are these the weights of a model that is followed?"""
        own = {id(e.array) for ref, _ in self._followed if (model := ref()) is not None for e in parameters(model)}
        return any(id(array) in own for array in weights.values())

    def _follow(self, model: nn.Module, optimisers: list[Optimizer]) -> None:
        if not self.is_listening or any(_holds(ref(), model) for ref, _ in self._followed):
            return
        for gone in [followed for followed in self._followed if followed[0]() is None]:
            self._followed.remove(gone)
            self.end(gone[1])
        attended = self.begin(model, tuple(optimisers), variable_of(model) or type(model).__name__)
        if attended is not None:
            self._followed.append((weakref.ref(model), attended))


def _holds(followed: nn.Module | None, model: nn.Module) -> bool:
    """A step may be taken of a part of a model."""
    return followed is model or (followed is not None and any(module is model for _, module in modules(followed)))
