"""Functions of ours in the place of one of Keras', for a time.

Keras' own, beside `listening.patches.Patch`: a patch of that kind stands once at a place and tells whoever listens, while here
several watches, benches and listeners to one pass each put their own function there, and they are removed in any order; what is
replaced may be the setter of a property, or a constructor whose signature Keras reads.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

from sleuth.adapters.listening.patches import attempt

Result = TypeVar("Result")
Function = Callable[..., Any]
Make = Callable[[Function], Function]  # is given the function that stood there before
_ABSENT = object()


@dataclass
class _Place:
    """One attribute of a class or a module, and who has put something there."""

    own: Any  # what the owner itself held; _ABSENT: it was inherited
    plain: Any
    makes: list[Make] = field(default_factory=list)
    ours: Any = None

    def filled(self) -> Any:
        found = self.plain
        for make in self.makes:
            found = _wrapped(found, make)
        return found


_places: dict[tuple[int, str], tuple[Any, _Place]] = {}


@contextmanager
def replaced(owner: Any, name: str, make: Make) -> Iterator[None]:
    """`make` is given the plain function, or that of a property's setter. What was inherited is inherited again afterwards."""
    _, place = _places.setdefault((id(owner), name), (owner, _found(owner, name)))
    # Somebody else has put theirs above ours since: that is what stands there now.
    if place.makes and vars(owner).get(name) is not place.ours:
        place = _found(owner, name)
        _places[id(owner), name] = (owner, place)
    place.makes.append(make)
    try:
        _fill(owner, name, place)
        yield
    finally:
        place.makes.remove(make)
        # Whoever came after us keeps what they put there: theirs calls ours, which is then of no more use to anybody.
        if place.ours is not None and vars(owner).get(name) is place.ours:
            _fill(owner, name, place)
        if not place.makes and _places.get((id(owner), name), (None, None))[1] is place:
            del _places[id(owner), name]


def _found(owner: Any, name: str) -> _Place:
    return _Place(vars(owner).get(name, _ABSENT), vars(owner)[name] if name in vars(owner) else getattr(owner, name))


def _fill(owner: Any, name: str, place: _Place) -> None:
    place.ours = place.filled() if place.makes else None
    if place.makes:
        setattr(owner, name, place.ours)
    elif place.own is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, place.own)


def _wrapped(plain: Any, make: Make) -> Any:
    if isinstance(plain, property):
        assert plain.fset is not None
        return property(plain.fget, wraps(plain.fset)(make(plain.fset)), plain.fdel, plain.__doc__)
    ours = wraps(plain)(make(plain))
    if getattr(plain, "__name__", "") == "__init__":
        # Keras reads a constructor's parameters in two ways, of which one does not look through a wrapper.
        ours.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
    return ours


@contextmanager
def contained_context(make: Callable[[], AbstractContextManager[Any]], failed: Callable[[Exception], None]) -> Iterator[None]:
    """Inside a call of the user's: what is inside runs whether ours can be entered or not, and only its own errors come out."""
    stack = ExitStack()
    attempt(failed, lambda: stack.enter_context(make()))
    try:
        yield
    finally:
        attempt(failed, stack.close)


def reraise(error: Exception) -> None:
    """On a copy of the model, where no code of the user's waits above us."""
    raise error
