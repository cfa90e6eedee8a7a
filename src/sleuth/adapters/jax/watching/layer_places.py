"""Where the user made a layer of Flax NNX, as far as somebody listened then."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

from sleuth.adapters.jax.watching.naming import users_line
from sleuth.core.location import Location

# Nothing is held by this.
PLACES: "weakref.WeakKeyDictionary[Any, Location]" = weakref.WeakKeyDictionary()


def make_construction(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Of the class of all classes of modules."""

    @functools.wraps(plain)
    def construct(kind: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(kind, *args, **kwargs)
        if kind.__module__.startswith("flax."):
            place = users_line()
            if place is not None:
                PLACES[made] = place
        return made

    return construct


def made_at(layer: Any) -> Location | None:
    try:
        return PLACES.get(layer)
    except TypeError:  # of something that has no hash
        return None
