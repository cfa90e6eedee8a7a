"""Trainings are noticed from outside: the first gradient that is taken by a tree of weights begins one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from sleuth.adapters.jax.watching.channel import Lane
from sleuth.adapters.jax.watching.created_at import model_of
from sleuth.adapters.jax.watching.hub import HUB
from sleuth.adapters.listening.discovery import Discovery

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.listener import JaxListener


class JaxDiscovery(Discovery):
    def open(self, *, found_already: bool = False) -> None:
        if HUB.discovery is None:  # else somebody attends to the whole script
            HUB.discover(self)

    def close(self) -> None:
        if HUB.discovery is self:
            HUB.calls.hear_single_calls()
            HUB.discover(None)

    def discovered(self, lane: Lane, weights: list[Any] | None, optimiser: Any = None) -> "JaxListener | None":
        """Whoever listens to it from now on; None: there were enough."""
        if not self.is_listening:
            return None
        before = len(HUB.listeners)
        if self.begin(*_training(lane, weights, optimiser)) is None:
            return None
        listener = HUB.listeners[before]
        listener.leave_when_enough = self.leave_when_enough
        return listener


def _training(lane: Lane, weights: list[Any] | None, optimiser: Any) -> tuple[Any, tuple[Any, ...], str]:
    known = model_of(weights)
    if known is not None:
        model, its = known
        return model, () if its is None else (its,), type(model).__name__
    return tree_of(lane, weights), () if optimiser is None else (optimiser,), "model"


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
