"""Trainings of trees are noticed from outside, by the gradients that are taken of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlx.optimizers import Optimizer
from mlx.utils import tree_unflatten

from sleuth.adapters.listening.discovery import Discovery
from sleuth.adapters.mlx.trees.candidates import Candidates
from sleuth.adapters.mlx.trees.tree import Named, Tree, named
from sleuth.adapters.mlx.trees.watcher import TreeWatcher, compiled_loss, compiled_weights
from sleuth.adapters.mlx.watching.array_names import variable_of
from sleuth.adapters.mlx.watching.compiled import Compiled
from sleuth.adapters.mlx.watching.differentiated import Differentiated
from sleuth.adapters.mlx.watching.listeners import LISTENERS, Events
from sleuth.core.contract.adapter import Attended

NAMELESS = "weights"


@dataclass(frozen=True)
class Followed:
    tree: Tree
    attended: Attended
    watcher: TreeWatcher | None


class TreeDiscovery(Events):
    """Finds them for a discovery, which opens and counts all watches."""

    def __init__(self, discovery: Discovery, owned: Callable[[Named], bool]) -> None:
        """`owned`: are these the weights of a model that is followed already?"""
        self._discovery, self._owned = discovery, owned
        self._candidates = Candidates()
        self._followed: list[Followed] = []

    def give_up(self, error: Exception) -> None:
        self._discovery.give_up(error)

    def hear_gradient_begin(self, taken: Differentiated, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if taken.model is None and self._discovery.is_listening:
            weights = taken.learned(args)
            self._follow(taken.code, weights, lambda: self._candidates.gradient_begins(taken.code, weights))

    def hear_gradient(self, taken: Differentiated, value: Any, gradients: Any) -> None:
        if taken.model is None and self._discovery.is_listening:
            self._candidates.gradient(value, gradients)

    def hear_step_begin(self, optimiser: Optimizer, target: Any, gradients: Any) -> None:
        if isinstance(target, dict | list | tuple) and self._discovery.is_listening:
            self._candidates.stepped(optimiser, gradients)

    def hear_compiled_begin(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if step.model is None and self._discovery.is_listening:
            code, weights = step.reading.code, _weights(step, args, kwargs)
            self._follow(code, weights, lambda: self._candidates.compiled_begins(code, weights))

    def hear_compiled(self, step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if step.model is None and self._discovery.is_listening:
            loss = compiled_loss(step, result)
            self._candidates.compiled(step.reading.code, _weights(step, args, kwargs), result, loss)

    def _follow(self, code: Any, weights: Any, found: Callable[[], Tree | None]) -> None:
        for one in [f for f in self._followed if f.tree.code is code]:
            if one.watcher is None or not one.watcher.restarts.begins_again():
                return
            self._followed.remove(one)
            self._discovery.end(one.attended)
        tree = found()
        if tree is None or self._owned(named(weights)):
            return
        candidate = self._candidates.take(code)
        before = len(LISTENERS)
        attended = self._discovery.begin(tree, tuple(candidate.optimisers), variable_of(weights) or NAMELESS)
        if attended is None:
            return
        watcher = next((one for one in LISTENERS[before:] if isinstance(one, TreeWatcher)), None)
        self._followed.append(Followed(tree, attended, watcher))
        if watcher is not None:
            watcher.begin_with(candidate.before, candidate.gradients, candidate.losses)


def _weights(step: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return tree_unflatten(list(compiled_weights(step, args, kwargs).items()))
