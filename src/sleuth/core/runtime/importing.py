"""Calls back when a module has been executed, by whomever: a framework is listened to as soon as the script has it.

Whether a module exists is asked long before anybody imports it, and often. So the finder stays until one of its specs was
really executed: Python tells a spec when that begins and ends, and nothing of ours is in its loader.
"""

import contextlib
import copyreg
import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
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
        if self.running <= 0 and name in sys.modules and not (self.is_folder and name == self.name):
            self.call_back()

    def call_back(self) -> None:
        if not self.is_over:
            forget(self)
            self.act()


class _HeardSpec(ModuleSpec):
    """Tells those who wait when the import of its module is over. For all else it is an ordinary spec, and becomes one then."""

    waiting: list[Waiting]

    def __setattr__(self, name: str, value: Any) -> None:
        begun = vars(self).get("_initializing")
        if name != "_initializing" or bool(value) == bool(begun):
            super().__setattr__(name, value)
        elif value:
            super().__setattr__(name, value)
            for one in self.waiting:
                one.running += 1
        else:
            # The module is still locked for other threads: they get it when it is listened to.
            try:
                self._tell()
            finally:
                super().__setattr__(name, value)

    def _tell(self) -> None:
        waiting = vars(self).pop("waiting")
        self.__class__ = ModuleSpec  # type: ignore[assignment]
        for one in waiting:
            one.ended(self.name)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state = {key: value for key, value in vars(self).items() if key != "waiting"}
        return copyreg.__newobj__, (ModuleSpec,), state  # type: ignore[attr-defined]


_HeardSpec.__name__ = _HeardSpec.__qualname__ = "ModuleSpec"  # as it shows itself


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: what others find is made to call back."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []
        self._asking = threading.local()

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        self._look_around()
        wanted = [one for one in self.waiting if one.wants(fullname)]
        asked: set[str] = vars(self._asking).setdefault("names", set())
        if not wanted or fullname in asked or target is not None:  # whoever is asked may ask everybody again
            return None
        asked.add(fullname)
        try:
            spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in _others(self))), None)
        finally:
            asked.discard(fullname)
        if spec is not None:
            for one in wanted:
                one.is_folder = one.is_folder or (spec.loader is None and fullname == one.name)
            listen(spec, wanted)
        return spec

    def _look_around(self) -> None:
        """Some modules come by ways that no spec hears of: a lazy loader, a loader that is called by hand."""
        for one in list(self.waiting):
            module = None if one.running or one.is_folder else sys.modules.get(one.name)
            if module is not None and not isinstance(getattr(module, "__spec__", None), _HeardSpec) and not _is_unfinished(module):
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
    if isinstance(spec, ModuleSpec):
        listen(spec, [waiting])
    return waiting


def listen(spec: ModuleSpec, waiting: list[Waiting]) -> None:
    if type(spec) is ModuleSpec:
        vars(spec)["waiting"] = []
        spec.__class__ = _HeardSpec
    if isinstance(spec, _HeardSpec):
        spec.waiting.extend(waiting)
        for one in waiting if getattr(spec, "_initializing", False) else ():
            one.running += 1


def forget(waiting: Waiting) -> None:
    waiting.is_over = True
    with contextlib.suppress(ValueError):
        FINDER.waiting.remove(waiting)
    if not FINDER.waiting:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(FINDER)


def _others(finder: _Finder) -> Iterator[Any]:
    return (other for other in list(sys.meta_path) if other is not finder and hasattr(other, "find_spec"))


def _is_unfinished(module: ModuleType) -> bool:
    """Being executed by somebody, or not yet: a lazy module has another class until it is."""
    if type(module) is not ModuleType and type(module).__module__.startswith("importlib"):
        return True
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_name == "<module>" and frame.f_globals is vars(module):
                return True
            frame = frame.f_back
    return False
