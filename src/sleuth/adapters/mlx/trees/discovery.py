"""Trainings of trees are noticed from outside, by the gradients that are taken of them."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlx.optimizers import Optimizer
from mlx.utils import tree_unflatten

from sleuth.adapters.mlx.trees.candidates import Candidates
from sleuth.adapters.mlx.trees.tree import Named, Tree, named
from sleuth.adapters.mlx.trees.watcher import TreeWatcher, compiled_loss, compiled_weights
from sleuth.adapters.mlx.watching import patches
from sleuth.adapters.mlx.watching.array_names import variable_of
from sleuth.core.contract.adapter import Attended, Discovered

# As for models: whoever begins ever more of them is not followed into each.
MOST_TRAININGS = 16
NAMELESS = "weights"


@dataclass(frozen=True)
class Followed:
    tree: Tree
    attended: Attended
    watcher: TreeWatcher | None


class TreeDiscovery(patches.Listener):
    def __init__(self, begin: Callable[[Discovered], Attended], owned: Callable[[Named], bool]) -> None:
        """`owned`: are these the weights of a model that is followed already?"""
        self.trouble: str | None = None
        self.missed = 0
        self._begin, self._owned = begin, owned
        self._candidates = Candidates()
        self._followed: list[Followed] = []
        self._steps_before = 0
        self._process = os.getpid()

    @property
    def steps(self) -> int:
        return self._steps_before + sum(one.attended.steps for one in self._followed)

    def hear_gradient_begin(self, taken: patches.Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if taken.model is None:
            weights = taken.learned(args)
            self._meet(
                taken.code,
                weights,
                lambda: self._candidates.gradient_begins(taken.code, weights),
                lambda watcher: watcher.hear_gradient_begin(taken, args, kwargs),
            )

    def hear_gradient(self, taken: patches.Differentiated, value: Any, gradients: Any) -> None:
        if taken.model is None:
            self._contained(lambda: self._candidates.gradient(value, gradients))

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if isinstance(target, dict | list | tuple):
            self._contained(lambda: self._candidates.stepped(optimiser, gradients))

    def hear_compiled_begin(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if step.model is None:
            weights = _weights(step, args, kwargs)
            self._meet(
                step.reading.code,
                weights,
                lambda: self._candidates.compiled_begins(step.reading.code, weights),
                lambda watcher: watcher.hear_compiled_begin(step, args, kwargs),
            )

    def hear_compiled(self, step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is None:
            code, loss = step.reading.code, compiled_loss(step, result)
            self._contained(lambda: self._candidates.compiled(code, _weights(step, args, kwargs), result, loss))

    def _contained(self, act: Callable[[], None]) -> None:
        try:
            if self.trouble is None and os.getpid() == self._process:
                act()
        except Exception as error:
            self.trouble = f"{type(error).__name__}: {error}"

    def _meet(self, code: Any, weights: Any, found: Callable[[], Tree | None], tell: Callable[[patches.Listener], None]) -> None:
        self._contained(lambda: self._follow(code, weights, found, tell))

    def _follow(
        self, code: Any, weights: Any, found: Callable[[], Tree | None], tell: Callable[[patches.Listener], None]
    ) -> None:
        for one in [f for f in self._followed if f.tree.code is code]:
            if one.watcher is None or not one.watcher.restarts.begins_again():
                return
            self._followed.remove(one)
            self._steps_before += one.attended.steps
            one.attended.end()
        tree = found()
        if tree is None or self._owned(named(weights)):
            return
        candidate = self._candidates.take(code)
        if len(self._followed) >= MOST_TRAININGS:
            self.missed += 1
            return
        before = len(patches.LISTENERS)
        attended = self._begin(Discovered(tree, tuple(candidate.optimisers), variable_of(weights) or NAMELESS))
        new = [watcher for watcher in patches.LISTENERS[before:] if isinstance(watcher, TreeWatcher)]
        self._followed.append(Followed(tree, attended, new[0] if new else None))
        for watcher in new:  # it came too late to hear what it was opened for
            watcher.begin_with(candidate.before, candidate.gradients, candidate.losses)
            tell(watcher)


def _weights(step: patches.Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tree_unflatten(list(compiled_weights(step, args, kwargs).items()))
