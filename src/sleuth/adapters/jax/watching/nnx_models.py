"""Models of Flax NNX that an optimiser was made for: a compiled step is given their arrays, and never the models themselves."""

import functools
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax

# Together with their optimisers; nothing is held by this.
MADE: list[tuple[Any, Any]] = []
MOST = 64


def make_init(plain: Callable[..., None]) -> Callable[..., None]:
    """Of nnx.Optimizer."""

    @functools.wraps(plain)
    def init(self: Any, model: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, model, *args, **kwargs)
        with suppress(Exception):  # in the middle of the user's code: nothing of ours may come through
            MADE.append((weakref.ref(model), weakref.ref(self)))
            del MADE[:-MOST]

    return init


def model_of(weights: list[Any] | None) -> tuple[Any, Any] | None:
    """The model that holds all of these very arrays, and its optimiser."""
    if not weights:
        return None
    own = {id(w) for w in weights}
    for model, optimiser in reversed(MADE):
        found, its = model(), optimiser()
        if found is not None and own <= {id(leaf) for leaf in jax.tree.leaves(found)}:
            return found, its
    return None
