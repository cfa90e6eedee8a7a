"""What stands in a framework's classes and modules: compared before and after, so that no list of patches is kept by hand."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sleuth.testing.kit import Kit
from sleuth.testing.trainings import Loop

SLEUTH = str(Path(__file__).parents[2])
Place = tuple[int, str]
Attributes = dict[Place, tuple[Any, Any]]  # the owner is kept: ids are not used twice


def packages_of(kit: Kit, loop: Loop, array: Any) -> set[str]:
    """The framework, what its arrays come from, and where the loop's own parts are written."""
    model = loop.model if isinstance(loop.model, list | tuple) else [loop.model]
    found = {type(thing).__module__.partition(".")[0] for thing in (*model, *loop.optimisers, array)}
    return {kit.name, *found} - {"builtins", "sleuth"}


def attributes(packages: set[str], things: Iterable[Any] = ()) -> Attributes:
    """Of every module of these packages, of the classes in them, and of these objects."""
    found: Attributes = {}
    with warnings.catch_warnings(action="ignore"):  # what is deprecated says so when it is looked at
        owners = [*_owners(packages), *things]
    for owner in owners:
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            found[(id(owner), name)] = (owner, value)
    return found


def changed(before: Attributes, after: Attributes) -> list[str]:
    """Functions, methods and classes that are other objects than before or gone, and those of sleuth that were not there."""
    with warnings.catch_warnings(action="ignore"):
        return _changed(before, after)


def _changed(before: Attributes, after: Attributes) -> list[str]:
    other = [
        _name(owner, place[1])
        for place, (owner, value) in before.items()
        if is_code(value) and after.get(place, (None, None))[1] is not value
    ]
    new = [_name(owner, place[1]) for place, (owner, value) in after.items() if place not in before and is_sleuths(value)]
    return sorted(other + new)


def replaced(before: Attributes, after: Attributes) -> list[Any]:
    """What stands there now and did not before."""
    return [value for place, (_, value) in after.items() if place not in before or before[place][1] is not value]


def is_sleuths(value: Any) -> bool:
    function = getattr(value, "__func__", value)
    code = getattr(function, "__code__", None)
    return type(value).__module__.partition(".")[0] == "sleuth" or (code is not None and code.co_filename.startswith(SLEUTH))


def is_code(value: Any) -> bool:
    return callable(value) or isinstance(value, staticmethod | classmethod | property)


def _owners(packages: set[str]) -> Iterator[Any]:
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in packages or module is None:
            continue
        yield module
        for value in list(getattr(module, "__dict__", {}).values()):
            if isinstance(value, type) and id(value) not in seen and value.__module__.partition(".")[0] in packages:
                seen.add(id(value))
                yield value


def _name(owner: Any, name: str) -> str:
    whose = getattr(owner, "__qualname__", getattr(owner, "__name__", type(owner).__name__))
    return f"{getattr(owner, '__module__', '')}.{whose}.{name}".lstrip(".")
