"""Lines of the user's: the one that runs now, and where things were made and models compiled, if that was seen."""

import sys
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import keras

from sleuth.adapters.keras.patching import replaced
from sleuth.core.location import Location, locate
from sleuth.core.place import DONE_AGAIN, is_users

# What stands above this is not what runs the model but who asked for an examination.
BENCH = str(Path(__file__).with_name("bench.py"))

_MADE: "weakref.WeakKeyDictionary[Any, Location]" = weakref.WeakKeyDictionary()
_COMPILED: "weakref.WeakKeyDictionary[Any, Location]" = weakref.WeakKeyDictionary()


def line_now() -> Location | None:
    """The innermost line of the user's, seen from a listener of ours."""
    if DONE_AGAIN:
        return DONE_AGAIN[-1]
    spot = spot_now()
    return None if spot is None else locate(*spot)


def spot_now() -> tuple[str, int] | None:
    """The same, before anything is read of the file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != BENCH:
        if is_users(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def located(file: str, line: int) -> Location:
    return DONE_AGAIN[-1] if DONE_AGAIN else locate(file, line)


def made_at(thing: Any) -> Location | None:
    return _MADE.get(thing)


def compiled_at(model: Any) -> Location | None:
    return _COMPILED.get(model)


def pass_on(thing: Any, copied: Any) -> None:
    """A copy comes from the same line."""
    for places in (_MADE, _COMPILED):
        if thing in places:
            places[copied] = places[thing]


def noted() -> ExitStack:
    """While it is open, whoever makes a layer or an optimiser, or compiles a model, is remembered."""
    base = keras.optimizers.Optimizer
    stack = ExitStack()
    stack.enter_context(replaced(keras.layers.Layer, "__init__", lambda plain: _noting(plain, _MADE)))
    stack.enter_context(replaced(base, "__init__", lambda plain: _noting(plain, _MADE)))
    stack.enter_context(replaced(keras.Model, "compile", lambda plain: _noting(plain, _COMPILED)))
    return stack


def _noting(plain: Callable[..., Any], places: "weakref.WeakKeyDictionary[Any, Location]") -> Callable[..., Any]:
    def note(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = plain(self, *args, **kwargs)
        place = line_now()
        if place is not None:
            places.setdefault(self, place) if places is _MADE else places.update({self: place})
        return made

    return note
