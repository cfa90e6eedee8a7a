"""Methods and functions of the user's, wrapped for the time of a watch: on their class, and where modules refer to them."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import Any

from sleuth.core.place import is_users

# What a loss is called. Whether it is one, its result tells: one number, or one number and more.
LOSS = re.compile(r"(^|_)(loss|cost|criterion|objective|cross_?entropy|nll|mse|bce|mae)($|_|\d|loss|fn|func)|loss$", re.I)

Around = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Taps:
    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._tapped: set[tuple[int, str]] = set()

    def method(self, owners: dict[int, Any], kind: type, name: str, around: Callable[[Any], Around]) -> bool:
        """Of those objects alone; another object of the class is passed by. False where it is no plain method."""
        raw = inspect.getattr_static(kind, name, None)
        if not isinstance(raw, FunctionType) or not is_users(raw.__code__.co_filename) or (id(kind), name) in self._tapped:
            return False

        @functools.wraps(raw)
        def heard(self: Any, *args: Any, **options: Any) -> Any:
            if id(self) not in owners:
                return raw(self, *args, **options)
            return around(self)(raw, (self, *args), options)

        own = name in vars(kind)
        setattr(kind, name, heard)
        self._undo.append(lambda: setattr(kind, name, raw) if own else delattr(kind, name))
        self._tapped.add((id(kind), name))
        return True

    def function(self, function: Callable[..., Any], around: Around) -> bool:
        """Wherever a module of the user's, or a scope that is running, refers to it. False where nobody does."""
        if not isinstance(function, FunctionType):
            return False

        @functools.wraps(function)
        def heard(*args: Any, **options: Any) -> Any:
            return around(function, args, options)

        found = [(space, key) for space in namespaces() for key, value in list(space.items()) if value is function]
        for space, key in found:
            space[key] = heard
            self._undo.append(lambda space=space, key=key: space.__setitem__(key, function) if space.get(key) is heard else None)  # type: ignore[misc]
        return bool(found)

    def close(self) -> None:
        while self._undo:
            self._undo.pop()()


def namespaces() -> Iterator[dict[str, Any]]:
    """Globals of the user's own modules and of the scopes that are running."""
    seen: set[int] = set()
    for space in (*(vars(m) for m in list(sys.modules.values()) if m is not None and hasattr(m, "__dict__")), *_running()):
        file = space.get("__file__")
        mine = is_users(file) if isinstance(file, str) else space.get("__name__") == "__main__" or id(space) in _ids(_running())
        if mine and id(space) not in seen:
            seen.add(id(space))
            yield space


def _running() -> list[dict[str, Any]]:
    return [frame.f_globals for frame in frames()]


def _ids(spaces: list[dict[str, Any]]) -> set[int]:
    return {id(space) for space in spaces}


def frames() -> list[FrameType]:
    """Of the user's own code, the innermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def losses(model: Any) -> Iterator[Any]:
    """Functions and objects that are called like a loss, where the loop can reach them: its scopes, and the model's module."""
    own = sys.modules.get(type(model).__module__)
    spaces = [*_running()[:2], *(frame.f_locals for frame in frames()[:2]), *([vars(own)] if own is not None else [])]
    seen: set[int] = set()
    for space in spaces:
        for key, value in list(space.items()):
            if id(value) in seen or isinstance(value, type):
                continue
            seen.add(id(value))
            named = isinstance(value, FunctionType) and LOSS.search(value.__name__) and LOSS.search(key)
            if (named and is_users(value.__code__.co_filename)) or (
                LOSS.search(type(value).__name__) and type(value).__module__ != "builtins"
            ):
                yield value
