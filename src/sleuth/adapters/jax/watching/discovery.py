"""Trainings are noticed from outside: the first gradient that is taken by a tree of weights begins one.

Runs inside the user's script: what goes wrong here ends the listening and is said; it never reaches the script."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from sleuth.adapters.jax.watching.channel import Lane
from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.jax.watching.nnx_models import model_of
from sleuth.core.contract.adapter import Attended, Discovered, Discovering
from sleuth.core.errors import EnoughSteps

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.watcher import Watcher

# Whoever makes a model of another shape at every step is not followed into each of them.
MOST_TRAININGS = 16


class JaxDiscovery(Discovering):
    def __init__(self, begin: Callable[[Discovered], Attended], steps: int | None = None) -> None:
        self.trouble = None
        self.missed = 0
        self._begin, self._most_steps = begin, steps
        self._attended: list[Attended] = []
        self._process = os.getpid()

    def open(self, *, found_already: bool = False) -> None:
        if HUB.discoverer is None:  # else somebody attends to the whole script
            HUB.discover(self)

    def close(self) -> None:
        if HUB.discoverer is self:
            HUB.hear_single_calls()
            HUB.discover(None)

    def begin(self, lane: Lane, weights: list[Any] | None, optimiser: Any = None) -> "Watcher | None":
        if self.trouble is not None:
            return None
        if len(self._attended) >= MOST_TRAININGS:
            self.missed += 1
            return None
        before = len(HUB.watchers)
        self._attended.append(self._begin(_discovered(lane, weights, optimiser)))
        watcher = HUB.watchers[before]
        watcher.most_steps = self._leave_when_enough
        return watcher

    def give_up(self, error: Exception) -> None:
        self.trouble = self.trouble or f"{type(error).__name__}: {error}"

    def _leave_when_enough(self) -> None:
        steps = sum(attended.steps for attended in self._attended)
        if self._most_steps is not None and os.getpid() == self._process and steps >= self._most_steps:
            raise EnoughSteps


def _discovered(lane: Lane, weights: list[Any] | None, optimiser: Any) -> Discovered:
    known = model_of(weights)
    if known is not None:
        model, its = known
        return Discovered(model, () if its is None else (its,), type(model).__name__)
    return Discovered(tree_of(lane, weights), () if optimiser is None else (optimiser,), "model")


def tree_of(lane: Lane, weights: Sequence[Any] | None) -> dict[str, Any]:
    """The weights by their names: what stands for a model that was never seen as a whole."""
    if weights is None:  # only their shapes are known
        weights = [jnp.zeros(shape, dtype) for shape, dtype in zip(lane.shapes, lane.dtypes, strict=True)]
    tree: dict[str, Any] = {}
    for (*parents, last), array in zip(lane.names, weights, strict=True):
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = array
    return tree
