"""What the loop can reach: its scopes, the modules of the user's own, and what stands there under telling names."""

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

# What a loss is called. Whether it is one, its result tells: one number, or one number and more.
LOSS = re.compile(r"(^|_)(loss|cost|criterion|objective|cross_?entropy|nll|mse|bce|mae)($|_|\d|loss|fn|func)|loss$", re.I)
CLIPPING = re.compile(r"(^|_)clip", re.I)
# Never a layer, and not looked into.
CLOSED = (str, bytes, int, float, complex, bool, type(None), np.ndarray, np.generic, type, FunctionType, MethodType, ModuleType)
# Scopes that are looked into: the loop's, and the one that called it.
NEAR = 2


def namespaces() -> Iterator[dict[str, Any]]:
    """Globals of the user's own modules and of the scopes that are running."""
    seen: set[int] = set()
    running = [frame.f_globals for frame in frames()]
    ids = {id(space) for space in running}
    for space in (*(vars(m) for m in list(sys.modules.values()) if m is not None and hasattr(m, "__dict__")), *running):
        file = space.get("__file__")
        mine = is_users(file) if isinstance(file, str) else space.get("__name__") == "__main__" or id(space) in ids
        if mine and id(space) not in seen:
            seen.add(id(space))
            yield space


def frames() -> list[FrameType]:
    """Of the user's own code, the innermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def loop_frame() -> FrameType | None:
    """The innermost scope of the user's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def users_line() -> Location | None:
    frame = loop_frame()
    return None if frame is None else locate(frame.f_code.co_filename, frame.f_lineno)


def things(model: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of what the loop can reach, once each: its scopes, and the model's module."""
    own = sys.modules.get(type(model).__module__)
    near = frames()[:NEAR]
    spaces: list[Mapping[str, Any]] = [*(f.f_globals for f in near), *(f.f_locals for f in near)]
    seen: set[int] = set()
    for space in (*spaces, *([vars(own)] if own is not None else [])):
        for key, value in list(space.items()):
            if id(value) not in seen and not isinstance(value, type | np.ndarray):
                seen.add(id(value))
                yield key, value


def losses(model: Any) -> Iterator[Any]:
    """Functions that are called like a loss, and objects that are or whose class is."""
    for key, value in things(model):
        if isinstance(value, FunctionType):
            if LOSS.search(value.__name__) and LOSS.search(key) and is_users(value.__code__.co_filename):
                yield value
        elif _is_own_object(value) and (LOSS.search(type(value).__name__) or (LOSS.search(key) and callable(value))):
            yield value


def clippers(model: Any) -> Iterator[FunctionType]:
    for key, value in things(model):
        named = isinstance(value, FunctionType) and CLIPPING.search(value.__name__) and CLIPPING.search(key)
        if named and is_users(value.__code__.co_filename):
            yield value


def loaders(model: Any) -> Iterator[Any]:
    """Objects of the user's own classes that can be gone through, and functions that yield batches."""
    for _, value in things(model):
        by_function = inspect.isgeneratorfunction(value) and is_users(value.__code__.co_filename)
        by_object = _is_own_object(value) and inspect.isfunction(getattr(type(value), "__iter__", None)) and not is_layer(value)
        if by_function or by_object:
            yield value


def is_layer(thing: Any) -> bool:
    """An object with forward, or one that can be called."""
    if isinstance(thing, CLOSED):
        return False
    return callable(getattr(thing, "forward", None)) or (callable(thing) and hasattr(thing, "__dict__"))


def _is_own_object(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ != "builtins" and hasattr(value, "__dict__") and not isinstance(value, FunctionType)
