"""Where the user made a layer of Flax NNX or Equinox, as far as somebody listened then."""

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import jax

from sleuth.adapters.jax.watching.naming import users_line
from sleuth.adapters.listening.patches import Failed, attempt
from sleuth.core.location import Location

# Nothing is held by this.
PLACES: "weakref.WeakKeyDictionary[Any, Location]" = weakref.WeakKeyDictionary()
# A layer of Equinox is a value, and every step makes another: where it was made is kept by its arrays.
ARRAYS: dict[int, tuple["weakref.ref[Any]", Location]] = {}
# Of Equinox, what is made anew at every call.
PASSING = ("equinox._",)


def make_construction(plain: Callable[..., Any], failed: Failed) -> Callable[..., Any]:
    """Of the class of all classes of modules."""

    def construct(kind: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(kind, *args, **kwargs)
        attempt(failed, _note_layer, kind, made)
        return made

    return construct


def _note_layer(kind: Any, made: Any) -> None:
    if kind.__module__.startswith("flax.") and (place := users_line()) is not None:
        with suppress(TypeError):  # a list of layers has no hash
            PLACES[made] = place


def made_at(layer: Any) -> Location | None:
    try:
        return PLACES.get(layer)
    except TypeError:  # of something that has no hash
        return None


def make_value_construction(plain: Callable[..., Any], failed: Failed) -> Callable[..., Any]:
    """Of the class of all classes of Equinox."""

    def construct(kind: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(kind, *args, **kwargs)
        attempt(failed, _note_arrays, kind, made)
        return made

    return construct


def _note_arrays(kind: Any, made: Any) -> None:
    if not kind.__module__.startswith(PASSING) and (place := users_line()) is not None:
        for leaf in jax.tree_util.tree_leaves(made):
            if array_made_at(leaf) is None:  # else it belongs to a layer inside
                _note(leaf, place)


def inherit(before: Sequence[Any] | None, after: Sequence[Any] | None) -> None:
    """The same weights a step later."""
    for old, new in zip(before or (), after or (), strict=False):
        if (place := array_made_at(old)) is not None:
            _note(new, place)


def array_made_at(array: Any) -> Location | None:
    known = ARRAYS.get(id(array))
    return known[1] if known is not None and known[0]() is array else None


def _note(array: Any, place: Location) -> None:
    if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
        key = id(array)
        ARRAYS[key] = weakref.ref(array, lambda _: ARRAYS.pop(key, None)), place
