"""What the leaves of a tree are called, and how one of them is found again in the tree of a later call."""

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

Path = tuple[Any, ...]  # keys as jax.tree_util has them

# Flax NNX hands its modules to JAX as numbered states whose leaves are the `value` of a variable.
STATES, VALUE = "states", "value"


def leaves_of(tree: Any) -> list[tuple[Path, Any]]:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def is_weight(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and hasattr(leaf, "shape") and jnp.issubdtype(dtype, jnp.floating)


def name_of(path: Path, *, whole: bool = False) -> tuple[str, ...]:
    """As the user would write it, key by key; `whole`: as it is."""
    words = [_word(key) for key in path]
    if whole:
        return tuple(words)
    if words[-1:] == [VALUE]:
        words.pop()
    while words and (words[0] == STATES or (words[0].isdigit() and len(words) > 1 and _is_state(path))):
        words.pop(0)
    return tuple(words) or ("weights",)


def _word(key: Any) -> str:
    return jax.tree_util.keystr((key,), simple=True)


def _is_state(path: Path) -> bool:
    return any(_word(key) == STATES for key in path[:2])


def weight_places(
    names: Sequence[tuple[str, ...]], weights: Sequence[Any], inputs: Sequence[tuple[Path, Any]]
) -> tuple[int, ...]:
    """Where among the step's inputs each weight is; empty where that cannot be told.

    A library may wrap them on the way: then the first input of the same name, shape and dtype is taken."""
    by_identity = {id(leaf): number for number, (_, leaf) in enumerate(inputs)}
    found = [by_identity.get(id(weight)) for weight in weights]
    if any(place is None for place in found):
        known = [(name_of(path), getattr(leaf, "shape", None), getattr(leaf, "dtype", None)) for path, leaf in inputs]
        found = [_first(known, name, weight) for name, weight in zip(names, weights, strict=True)]
    return tuple(p for p in found if p is not None) if all(p is not None for p in found) else ()


def _first(known: list[tuple[Any, ...]], name: tuple[str, ...], weight: Any) -> int | None:
    wanted = (weight.shape, weight.dtype)
    fitting = (i for i, (path, *kind) in enumerate(known) if path[-len(name) :] == name and tuple(kind) == wanted)
    return next(fitting, None)


def users_line() -> Location | None:
    """Of the user's own, the innermost: what is compiled is called through functions of ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return locate(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def pick(tree: Any, path: Path) -> Any:
    """The leaf at a path: much quicker than to flatten the whole."""
    for key in path:
        if isinstance(key, jax.tree_util.SequenceKey):
            tree = tree[key.idx]
        elif isinstance(key, jax.tree_util.DictKey):
            tree = tree[key.key]
        elif isinstance(key, jax.tree_util.GetAttrKey):
            tree = getattr(tree, key.name)
        else:
            raise LookupError(f"{key!r} cannot be looked up")
    return tree
