"""The user's own methods and functions, patched for the time of a watch: on their class, and where modules refer to them."""

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, Protocol

from sleuth.adapters.common.manual_loop.loop_scope import namespaces
from sleuth.adapters.listening.listener import Listener
from sleuth.adapters.listening.patches import Patch
from sleuth.core.runtime.place import is_users

Function = Callable[..., Any]
Args = tuple[Any, ...]
Options = dict[str, Any]


class CallHandler(Protocol):
    """Told of the calls of one function. What it raises ends the listening, and never reaches the user."""

    def begin(self, function: Function, args: Args, options: Options) -> "CallHandler | None":
        """Before the call: who is to be told of its end. None: nobody."""

    def failed(self, *, called: bool) -> None:
        """Instead of the end: the function raised, or was not `called` because the user asked to be stopped."""

    def end(self, function: Function, args: Args, options: Options, returned: Any) -> Any:
        """After the call: what the caller is to be given instead. None: what the function returned."""


class Handlers(NamedTuple):
    """`light` is told while the light listener is on; None: nobody is then."""

    full: CallHandler
    light: CallHandler | None = None


Find = Callable[[Any], Handlers | None]  # by the first argument: the object, of a method; None: its calls are nobody's concern


class Switch(Protocol):
    """Of a light listener."""

    on: bool


class Off:
    on = False


class Patches:
    """All patches of one watch. The user's function is called once, with what it was given, whatever happens to us."""

    def __init__(self, listener: Listener, light: Switch | None = None) -> None:
        self._listener, self._light = listener, light or Off()
        self._undo: list[Callable[[], None]] = []
        self._patched: set[tuple[int, str]] = set()
        self.is_open = True

    def method(self, kind: type, name: str, find: Find, *, foreign: bool = False, lightly: bool = True) -> bool:
        """False where it is no plain method, or not the user's; `foreign`: another library's will do. `lightly`: the light
        listener is told as well."""
        raw = inspect.getattr_static(kind, name, None)
        if not isinstance(raw, FunctionType) or (id(kind), name) in self._patched:
            return False
        if not foreign and not is_users(raw.__code__.co_filename):
            return False
        self._undo.append(Patch(kind, name, lambda original: self._patch(original, find, lightly), shared=False).remove)
        self._patched.add((id(kind), name))
        return True

    def function(self, function: Function, handlers: Handlers) -> bool:
        """Wherever a module of the user's, or a scope that is running, refers to it. False where nobody does."""
        if not isinstance(function, FunctionType):
            return False
        patched = functools.wraps(function)(self._patch(function, lambda _: handlers))
        found = [(space, key) for space in namespaces() for key, value in list(space.items()) if value is function]
        for space, key in found:
            space[key] = patched
            self._undo.append(functools.partial(_put_back, space, key, patched, function))
        return bool(found)

    def close(self) -> None:
        self.is_open = False
        while self._undo:
            self._undo.pop()()
        Patch.remove_covered()

    def _patch(self, function: Function, find: Find, lightly: bool = True) -> Function:
        listener, light = self._listener, self._light

        def patched(*args: Any, **options: Any) -> Any:
            if light.on and not lightly:
                return function(*args, **options)
            told: CallHandler | None = None
            if listener.gave_up is None and self.is_open:
                try:
                    handlers = find(args[0] if args else None)
                    handler = None if handlers is None else handlers.light if light.on else handlers.full
                    told = None if handler is None else handler.begin(function, args, options)
                except Exception as error:
                    listener.give_up(error)
            if told is None:
                return function(*args, **options)
            called = False
            try:
                if not light.on:
                    listener.speak_up()
                called = True
                returned = function(*args, **options)
            except BaseException:
                _tell_failed(listener, told, called)
                raise
            given = None
            if listener.gave_up is None:
                try:
                    given = told.end(function, args, options, returned)
                except Exception as error:
                    listener.give_up(error)
                if not light.on:
                    listener.speak_up()
            return returned if given is None else given

        return patched


def _tell_failed(listener: Listener, told: CallHandler, called: bool) -> None:
    try:
        told.failed(called=called)
    except Exception as error:
        listener.give_up(error)


def _put_back(space: dict[str, Any], key: str, patched: Function, function: Function) -> None:
    if space.get(key) is patched:
        space[key] = function
