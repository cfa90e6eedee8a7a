"""Methods and functions of the user's, wrapped for the time of a watch: on their class, and where modules refer to them."""

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Protocol

from sleuth.adapters.common.manual_loop.loop_scope import namespaces
from sleuth.core.runtime.place import is_users

Around = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
Awake = Callable[[Any], Around]  # by the object whose method it is
Doze = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Awake], Any]


class Switch(Protocol):
    """Of the light listener."""

    on: bool


class Taps:
    """`around` is for those who are awake. While `dozing` is on, `doze` hears instead, and where there is none nobody does."""

    def __init__(self, dozing: Switch | None = None) -> None:
        self._dozing = dozing
        self._undo: list[Callable[[], None]] = []
        self._tapped: set[tuple[int, str]] = set()

    def method(self, owners: Mapping[int, Any] | None, kind: type, name: str, around: Awake, doze: Doze | None = None) -> bool:
        """Of those objects alone; another object of the class is passed by. None: of every object. False where it is no plain
        method."""
        raw = inspect.getattr_static(kind, name, None)
        if not isinstance(raw, FunctionType) or not is_users(raw.__code__.co_filename) or (id(kind), name) in self._tapped:
            return False
        dozing = self._dozing

        @functools.wraps(raw)
        def heard(self: Any, *args: Any, **options: Any) -> Any:
            if owners is not None and id(self) not in owners:
                return raw(self, *args, **options)
            if dozing is not None and dozing.on:
                return raw(self, *args, **options) if doze is None else doze(raw, (self, *args), options, around)
            return around(self)(raw, (self, *args), options)

        own = name in vars(kind)
        setattr(kind, name, heard)
        self._undo.append(lambda: setattr(kind, name, raw) if own else delattr(kind, name))
        self._tapped.add((id(kind), name))
        return True

    def function(self, function: Callable[..., Any], around: Around, doze: Doze | None = None) -> bool:
        """Wherever a module of the user's, or a scope that is running, refers to it. False where nobody does."""
        if not isinstance(function, FunctionType):
            return False
        dozing = self._dozing

        @functools.wraps(function)
        def heard(*args: Any, **options: Any) -> Any:
            if dozing is not None and dozing.on and doze is not None:
                return doze(function, args, options, lambda _: around)
            return around(function, args, options)

        found = [(space, key) for space in namespaces() for key, value in list(space.items()) if value is function]
        for space, key in found:
            space[key] = heard
            self._undo.append(lambda space=space, key=key: space.__setitem__(key, function) if space.get(key) is heard else None)  # type: ignore[misc]
        return bool(found)

    def close(self) -> None:
        while self._undo:
            self._undo.pop()()
