"""Names that a framework does not promise to keep and an adapter uses all the same.

Each adapter lists its own in `compat.py`, with what is lost without them. Where a version of the framework has dropped one, the
user reads which, and which versions will do.
"""

import importlib
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from sleuth.core.errors import UnusableInput


@dataclass(frozen=True)
class PrivateName:
    """`name` is dotted; an attribute of objects is named through their class. `lost` is what the adapter cannot do without it."""

    name: str
    purpose: str
    lost: str


@dataclass(frozen=True)
class PrivateNames:
    framework: str
    oldest: str  # the oldest version that can work
    tried: tuple[str, ...]  # versions that the tests ran on
    needed: tuple[PrivateName, ...] = ()  # without one of these the adapter is not imported
    replaced: tuple[PrivateName, ...] = ()  # the adapter has another way, or another answer, where one is gone
    when_imported: tuple[PrivateName, ...] = ()  # in modules that the framework itself imports only when they are used
    attributes: tuple[PrivateName, ...] = ()  # of the framework's objects

    def require(self) -> None:
        """Before any module of the adapter is imported, because those import the names directly."""
        if _numbers(self._version()) < _numbers(self.oldest):
            raise UnusableInput(f"{self.framework} {self._version()} is too old for sleuth. {self._cure()}")
        gone = [private for private in self.needed if not exists(private.name)]
        if gone:
            raise UnusableInput(self._message(gone))

    def if_imported(self, name: str) -> Any:
        """None: the framework has not imported the module yet, so nothing in it was used."""
        private = next(private for private in self.when_imported if private.name == name)
        module, attribute = name.rsplit(".", 1)
        if module not in sys.modules:
            return None
        if not hasattr(sys.modules[module], attribute):
            raise UnusableInput(self._message([private]))
        return getattr(sys.modules[module], attribute)

    def _message(self, gone: list[PrivateName]) -> str:
        names = "; ".join(f"{private.name} ({private.lost})" for private in gone)
        return f"{self.framework} {self._version()} does not have what sleuth needs of it: {names}. {self._cure()}"

    def _cure(self) -> str:
        return f"Install {self.framework} {self.oldest} or newer; sleuth was tried with {', '.join(self.tried)}."

    def _version(self) -> str:
        try:
            return metadata.version(self.framework)
        except metadata.PackageNotFoundError:  # not installed as a package: a checkout, or a stand-in
            return ""


def _numbers(version: str) -> list[int]:
    """`2.13.0+cpu` → [2, 13, 0]; of what is not a version nothing, which is older than nothing."""
    found = re.match(r"\d+(\.\d+)*", version)
    return [] if found is None else [int(part) for part in found[0].split(".")]


def exists(name: str) -> bool:
    try:
        resolve(name)
    except (ImportError, AttributeError):
        return False
    return True


def resolve(name: str) -> Any:
    """The object of this dotted name. Modules on the way are imported."""
    first, *rest = name.split(".")
    found, path = importlib.import_module(first), first
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


def alike(owner: str, names: str, purpose: str, lost: str) -> tuple[PrivateName, ...]:
    """Several of one owner that serve the same purpose; `names` stand between spaces."""
    return tuple(PrivateName(f"{owner}.{name}", purpose, lost) for name in names.split())
