"""From which of the user's lines a state of an optimiser of optax is begun.

Such an optimiser is a named tuple of functions, and a state is what its `init` returns: that field is listened to on the class,
so that nothing is hung on the user's own."""

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.naming import users_line
from sleuth.core.location import Location

# Whoever puts optimisers together reads the field, and so do we; no state begins there.
PASSING = ("sleuth", "optax")
MOST = 256


class Begun:
    """Of one training: the lines, with the steps taken before each."""

    def __init__(self) -> None:
        self._known: deque[tuple[int, Location]] = deque(maxlen=MOST)

    def note(self, steps: int, place: Location) -> None:
        self._known.append((steps, place))

    def before(self, step: int) -> Location | None:
        """The last one before this step was taken."""
        return next((place for steps, place in reversed([*self._known]) if steps <= step), None)


def make_traced_field(plain: Any) -> property:
    """Noted while a step is traced, and at no other time: an optimiser is asked at every step."""

    def update(optimiser: Any) -> Any:
        if HEARING.collector is not None:
            with suppress(Exception):
                reader = str(sys._getframe(1).f_globals.get("__name__", ""))
                if reader.split(".")[0] not in PASSING:
                    HEARING.collector.asked_at = users_line()
        return plain.__get__(optimiser, type(optimiser))

    return property(update)


def make_field(plain: Any, told: Callable[[Any, Location], None]) -> property:
    """`plain`: the field as it is."""

    def init(optimiser: Any) -> Any:
        with suppress(Exception):  # in the middle of the user's code: nothing of ours may come through
            reader = str(sys._getframe(1).f_globals.get("__name__", ""))
            if reader.split(".")[0] not in PASSING and (place := users_line()) is not None:
                told(optimiser, place)
        return plain.__get__(optimiser, type(optimiser))

    return property(init)
