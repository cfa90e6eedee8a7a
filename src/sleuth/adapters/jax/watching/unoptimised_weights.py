"""Weights that a step takes the gradient of and gives to no optimiser, because only a part of them is updated."""

import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from sleuth.adapters.jax.watching.channel import Lane, Part
from sleuth.adapters.jax.watching.created_at import PLACES, made_at
from sleuth.adapters.jax.watching.naming import leaves_of, name_of
from sleuth.core.location import Location


def left_out(gradient: Part, parts: Sequence[Part]) -> tuple[tuple[str, ...], ...]:
    """Which of the weights of this gradient no update of the same step holds. None where there is no update of some of them, or
    where it cannot be told of which."""
    updates = [part for part in parts if not part.is_gradient]
    held: set[int] = set()
    for part in updates:
        own = _places(part.lane, gradient.lane)
        if own is None:
            return ()
        held |= own
    return tuple(name for place, name in enumerate(gradient.lane.names) if place not in held) if held else ()


def updated_at(parts: Sequence[Part]) -> Location | None:
    return next((part.place for part in parts if part.place is not None), None)


def _places(lane: Lane, whole: Lane) -> set[int] | None:
    """Of the leaves of a lane among those of a larger one. Names may be longer there."""
    found: set[int] = set()
    for name, shape, dtype in zip(lane.names, lane.shapes, lane.dtypes, strict=True):
        fits = [
            place
            for place, other in enumerate(zip(whole.names, whole.shapes, whole.dtypes, strict=True))
            if other[1:] == (shape, dtype) and other[0][-len(name) :] == name
        ]
        if len(fits) != 1 or fits[0] in found:
            return None
        found.add(fits[0])
    return found


def holding(optimiser: Any, left: Sequence[tuple[str, ...]]) -> Any:
    """An optimiser of a whole tree that holds all but the weights of these names, and leaves those as they are."""

    def is_held(tree: Any) -> list[bool]:
        return [name_of(path) not in left for path, _ in leaves_of(tree)]

    def chosen(tree: Any) -> list[Any]:
        return [leaf for leaf, held in zip(jax.tree.leaves(tree), is_held(tree), strict=True) if held]

    def init_fn(params: Any) -> Any:
        return optimiser.init(chosen(params))

    def update_fn(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        leaves, tree = jax.tree.flatten(updates)
        moved, state = optimiser.update(chosen(updates), state, None if params is None else chosen(params), **extra)
        waiting = iter(moved)
        made = [next(waiting) if held else jnp.zeros_like(leaf) for leaf, held in zip(leaves, is_held(updates), strict=True)]
        return jax.tree.unflatten(tree, made), state

    if (place := made_at(optimiser)) is not None:
        PLACES[update_fn] = place
    return sys.modules["optax"].GradientTransformationExtraArgs(init_fn, update_fn)
