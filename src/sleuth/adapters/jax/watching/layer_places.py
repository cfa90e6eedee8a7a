"""Where the user made a layer of Flax NNX, as far as somebody listened then."""

import functools
import weakref
from collections.abc import Callable
from contextlib import suppress
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
        # In the middle of the user's own construction: nothing of ours may come through. A list of layers has no hash.
        with suppress(Exception):
            if kind.__module__.startswith("flax.") and (place := users_line()) is not None:
                PLACES[made] = place
        return made

    return construct


def made_at(layer: Any) -> Location | None:
    try:
        return PLACES.get(layer)
    except TypeError:  # of something that has no hash
        return None
