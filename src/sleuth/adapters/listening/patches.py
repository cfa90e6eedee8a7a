"""Functions of ours in the place of a framework's, for a time, and whom they tell.

A patch translates one call of the framework into events and does nothing else: it tells through `tell`, which lets no error
out, and then lets `speak_up` do what the user asked for, which may raise.
"""

import functools
import os
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, ClassVar, Protocol, TypeVar

Function = Callable[..., Any]
Make = Callable[[Any], Any]  # is given what stood there before
Failed = Callable[[Exception], None]
_INHERITED = object()
CARRIERS: set[CodeType] = set()  # marked by `carries_call`
R = TypeVar("R")
F = TypeVar("F", bound=Function)


class Told(Protocol):
    """A Listener, a Discovery, or whoever stands in for one."""

    def give_up(self, error: Exception) -> None: ...

    def speak_up(self) -> None: ...


def tell(listeners: Iterable[Told], event: str, *args: Any) -> None:
    """Calls the method of that name on each. One that joins meanwhile is told as well, if the list itself is given."""
    for listener in listeners:
        try:
            getattr(listener, event)(*args)
        except Exception as error:
            listener.give_up(error)


def speak_up(listeners: Iterable[Told]) -> None:
    """Before weights are written. May raise: `on_error="stop"`, a limit of steps, the user's own function."""
    for listener in list(listeners):
        listener.speak_up()


def attempt(failed: Failed, action: Callable[..., R], *args: Any) -> R | None:
    """Something of ours inside a call of the user's: its errors go to `failed`, and the user's call goes on. None: it failed."""
    try:
        return action(*args)
    except Exception as error:
        failed(error)
        return None


def put_back(*actions: Callable[[], None]) -> None:
    """What is the user's again: each action is done whatever happens to the others, and one that raises is tried once more. The
    first error is raised at the end."""
    errors = []
    for action in actions:
        try:
            action()
        except Exception as error:
            errors.append(error)
            attempt(errors.append, action)
    if errors:
        raise errors[0]


def carries_call(function: F) -> F:
    """Marks a function through which the user's own call passes. Like a patch it cannot keep an error that comes before that
    call: beside its own bookkeeping it does nothing else than `tell`, `attempt` and the call."""
    CARRIERS.add(function.__code__)
    return function


class Patch:
    """Replaces one attribute of a class or module; `remove` puts back what was there, or nothing where it was inherited.

    If another library wrapped our patch meanwhile we cannot remove it: it then records nothing, is used again by the next one
    for this place, and goes as soon as the wrapper has gone. A patch that is not `shared` tells one listener alone: the next one
    for this place is put above it instead."""

    _covered: ClassVar[list["Patch"]] = []  # below a wrapper of another library's that was still there

    def __init__(self, owner: Any, name: str, make: Make, *, shared: bool = True) -> None:
        self._owner, self._name, self._shared = owner, name, shared
        self._own: Any
        self._ours: Any
        self.remove_covered()
        covered = [p for p in self._covered if p._shared and shared and p._owner is owner and p._name == name]
        if (below := next(iter(covered), None)) is not None:
            # It tells whoever listens now: another one above it would tell everything twice.
            self._covered.remove(below)
            self._own, self._ours = below._own, below._ours
            return
        self._own = vars(owner).get(name, _INHERITED)
        original = getattr(owner, name)
        ours = make(original)
        # A property in the place of a field has no name to take over.
        self._ours = functools.wraps(original)(ours) if callable(ours) else ours
        setattr(owner, name, self._ours)

    def remove(self) -> None:
        if vars(self._owner).get(self._name) is not self._ours:
            self._covered.append(self)
        elif self._own is _INHERITED:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)

    @classmethod
    def remove_covered(cls) -> None:
        """Second pass: removes patches that another library's wrapper covered until now."""
        waiting, cls._covered = cls._covered, []
        for patch in waiting:
            patch.remove()


class Patches:
    """The patches of a framework, in place as long as somebody listens. `make` is given the list of those who do, for `tell`."""

    def __init__(self, make: Callable[[list[Told]], Iterable[Patch]]) -> None:
        self._make = make
        self._patches: list[Patch] = []
        self.listeners: list[Told] = []
        # A child made by fork has nobody to report to.
        os.register_at_fork(after_in_child=self.listeners.clear)

    def add(self, listener: Told) -> None:
        if not self._patches:
            self._patches = list(self._make(self.listeners))
        self.listeners.append(listener)

    def remove(self, listener: Told) -> None:
        """Whoever is told right now is told to the end. Removed twice, or in a child made by fork: nothing happens."""
        if listener in self.listeners:
            self.listeners.remove(listener)
        if not self.listeners:
            patches, self._patches = self._patches, []
            for patch in reversed(patches):
                patch.remove()
