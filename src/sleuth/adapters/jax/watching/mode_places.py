"""From which of the user's lines a model of Flax NNX was put into a mode, as far as somebody listened then."""

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from sleuth.adapters.jax.watching.naming import users_line
from sleuth.core.location import Location
from sleuth.core.observation import Call

# The methods of a module, and what they are called in observations.
SWITCHES = ("train", "eval")
# The first line for each; nothing is held by this.
PLACES: "weakref.WeakKeyDictionary[Any, dict[str, Location]]" = weakref.WeakKeyDictionary()


def make_switch(plain: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @functools.wraps(plain)
    def switch(self: Any, *args: Any, **kwargs: Any) -> Any:
        with suppress(Exception):  # in the middle of the user's code: nothing of ours may come through
            known = PLACES.setdefault(self, {})
            if kind not in known and (place := users_line()) is not None:
                known[kind] = place
        return plain(self, *args, **kwargs)

    return switch


class Switched:
    """Says each of the lines once."""

    def __init__(self, model: Any) -> None:
        self._model = weakref.ref(model)
        self._told: set[str] = set()

    def calls(self, step: int) -> Iterator[Call]:
        model = self._model()
        for kind, place in list(PLACES.get(model, {}).items()) if model is not None else ():
            if kind not in self._told:
                self._told.add(kind)
                yield Call(kind, step, place)
