"""Calls back when a module has been executed, by whomever: a framework is listened to as soon as the script has it.

Whether a module exists is asked long before anybody imports it, and often: such questions get the answer that they would get
without us. Only the spec of a real import is made to tell when it is over; Python says that to the spec, and to nobody else.
"""

import contextlib
import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Waiting:
    """For one module."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name, self.act = name, act
        self.is_folder = False  # without code of its own, such as mlx: the first module in it counts
        self.running = 0  # imports of it that have begun and are not over
        self.is_over = False

    def wants(self, name: str) -> bool:
        return name == self.name or (self.is_folder and name.startswith(f"{self.name}."))

    def ended(self, name: str) -> None:
        self.running -= 1
        # A module in a folder may have imported another one there: the outermost counts, when all of it is there.
        if self.running == 0 and name in sys.modules and not (self.is_folder and name == self.name):
            self.call_back()

    def call_back(self) -> None:
        if not self.is_over:
            forget(self)
            with contextlib.suppress(Exception):  # in the middle of the user's import
                self.act()


class _HeardSpec(ModuleSpec):
    """The spec of a module that is being imported: tells those who wait when that is over, and is an ordinary one again."""

    waiting: list[Waiting]

    def __setattr__(self, name: str, value: Any) -> None:
        # Before it is said: other threads wait for the module until it is listened to.
        if name == "_initializing" and not value:
            waiting = vars(self).pop("waiting")
            self.__class__ = ModuleSpec  # type: ignore[assignment]
            for one in waiting:
                one.ended(self.name)
        object.__setattr__(self, name, value)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: what others find for an import is made to call back."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        self._look_around()
        wanted = [one for one in self.waiting if one.wants(fullname)]
        # A question, or another finder that asks everybody, comes from elsewhere.
        if not wanted or sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None:
            for one in wanted:
                one.is_folder = one.is_folder or (spec.loader is None and fullname == one.name)
            _listen(spec, wanted)
        return spec

    def _look_around(self) -> None:
        """Some modules come by ways that no spec hears of: a lazy loader, a loader that is called by hand."""
        for one in list(self.waiting):
            module = None if one.running or one.is_folder else sys.modules.get(one.name)
            if module is not None and not _is_unfinished(module):
                one.call_back()


FINDER = _Finder()


def when_imported(name: str, act: Callable[[], None]) -> Waiting | None:
    """At once where it is there already. What is returned can be forgotten again."""
    module, waiting = sys.modules.get(name), Waiting(name, act)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        act()
        return None
    FINDER.waiting.append(waiting)
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
    # A library that imports, in its first lines, the framework whose import has called us: the rest of it is not there yet.
    if spec is not None:
        _listen(spec, [waiting])
    return waiting


def forget(waiting: Waiting) -> None:
    waiting.is_over = True
    with contextlib.suppress(ValueError):
        FINDER.waiting.remove(waiting)
    if not FINDER.waiting:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(FINDER)


def _listen(spec: ModuleSpec, waiting: list[Waiting]) -> None:
    if type(spec) is ModuleSpec:
        vars(spec)["waiting"] = []
        spec.__class__ = _HeardSpec
    if isinstance(spec, _HeardSpec):
        spec.waiting.extend(waiting)
        for one in waiting:
            one.running += 1


def _is_unfinished(module: ModuleType) -> bool:
    """Being executed by somebody, or not yet: a lazy module has a class of its own until it is."""
    if type(module) is not ModuleType and type(module).__module__.startswith("importlib"):
        return True
    for frame in sys._current_frames().values():
        at = frame
        while at is not None:
            if at.f_code.co_name == "<module>" and at.f_globals is vars(module):
                return True
            at = at.f_back  # type: ignore[assignment]
    return False
