"""What code keeps outside of what it is given: closures, globals and attributes, as far as they can be looked at.

Who does something twice must know whether the second time could begin as the first did.
"""

from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.runtime.randomness import GENERATORS, state_of

PLAIN = (int, float, complex, str, bytes, bool, type(None), range, slice)
DEPTH = 4
MOST = 64  # entries of a container, attributes of an object
ARRAY_BYTES = 1 << 16  # of larger arrays their ends speak


class Outside:
    """Taken when it is made; `changed` looks again."""

    def __init__(self, adapter: Adapter, *things: Any) -> None:
        self._adapter = adapter
        self._things = things
        self.opaque = False  # something has a place of its own that nobody can see, such as an iterator
        self._before = self._look()

    def changed(self) -> str | None:
        """The name of what is not as it was."""
        now = self._look()
        names = (name for name in {**self._before, **now} if now.get(name) != self._before.get(name))
        return next((name.lstrip(".") or "something" for name in names), None)

    def _look(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        seen: set[int] = set()
        for thing in self._things:
            self._note("", thing, DEPTH, found, seen)
        return found

    def _note(self, name: str, thing: Any, depth: int, found: dict[str, Any], seen: set[int]) -> None:
        if isinstance(thing, PLAIN):
            found[name] = thing
            return
        if id(thing) in seen or isinstance(thing, type | ModuleType | BuiltinFunctionType):
            return
        seen.add(id(thing))
        if isinstance(thing, GENERATORS):
            found[name] = repr(state_of(thing))
        elif _is_generator(thing):  # a framework's own
            found[name] = np.asarray(thing.get_state()).tobytes()
        elif self._adapter.is_array(thing):
            found[name] = _ends(np.asarray(self._adapter.values(thing)))
        elif hasattr(type(thing), "__next__"):
            self.opaque = True
        elif depth > 0:
            for key, child in _children(thing):
                self._note(f"{name}.{key}", child, depth - 1, found, seen)


def _is_generator(thing: Any) -> bool:
    try:
        return hasattr(thing, "get_state") and hasattr(thing, "manual_seed")
    except Exception:  # whoever stands for a module that is not installed says so at the first question
        return False


def _children(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, MethodType):
        yield "self", thing.__self__
        yield from _children(thing.__func__)
    elif isinstance(thing, FunctionType):
        yield from _function(thing)
    elif isinstance(thing, dict):
        yield "len()", len(thing)
        yield from ((str(k), v) for k, v in list(thing.items())[:MOST])
    elif isinstance(thing, list | tuple | set | frozenset):
        yield "len()", len(thing)
        yield from ((str(i), v) for i, v in enumerate(list(thing)[:MOST]))
    else:
        yield from list(getattr(thing, "__dict__", {}).items())[:MOST]
        for method in _methods(type(thing)):
            yield from _function(method)


def _function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue
    # Only what is written there as a name of its own: modules and classes are passed over by who asks.
    yield from ((n, function.__globals__[n]) for n in function.__code__.co_names if n in function.__globals__)


def _methods(kind: type) -> Iterator[FunctionType]:
    """Of the user's own classes: what a library keeps is its own business."""
    for base in kind.__mro__:
        if base.__module__.split(".")[0] in LIBRARIES:
            return
        yield from (m for m in vars(base).values() if isinstance(m, FunctionType))


LIBRARIES = ("builtins", "abc", "collections", "torch", "jax", "flax", "equinox", "keras", "mlx", "mithril", "numpy", "sklearn")


def _ends(array: np.ndarray) -> tuple[Any, ...]:
    flat = array.reshape(-1) if array.flags.c_contiguous else array
    few = max(1, ARRAY_BYTES // max(array.itemsize, 1) // 2)
    if array.dtype.kind == "O" or not array.flags.c_contiguous:
        return array.shape, str(array.dtype)
    return array.shape, flat[:few].tobytes(), flat[-few:].tobytes()
