"""Calls back when a module has been imported, by whomever: a framework is listened to as soon as the script has it."""

import contextlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class _Waiting(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: whoever finds the module is made to call back once it was executed."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name, self.act = name, act
        self.inner = False
        self.midst: _InTheMidst | None = None  # it waits for the end of an import that has begun

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name and not (self.inner and fullname.startswith(f"{self.name}.")):
            return None
        forget(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is None:  # a folder without code of its own, such as mlx: the first module in it counts
                    self.inner = True
                    sys.meta_path.insert(0, self)
                self._arrange(spec.loader)
                return spec
        return None

    def _arrange(self, loader: Any) -> None:
        if not hasattr(loader, "exec_module"):
            return
        plain = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            plain(module)
            self.act()

        # A loader belongs to one module; nothing of this is left when the import is done.
        with contextlib.suppress(AttributeError):
            loader.exec_module = exec_module


class _InTheMidst(importlib.machinery.ModuleSpec):
    """The spec of a module that is being imported: Python tells it when that is over, and nobody else."""

    waiting: list[_Waiting]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_initializing" or value:
            return
        waiting = self.__dict__.pop("waiting", [])
        self.__class__ = importlib.machinery.ModuleSpec  # type: ignore[assignment]
        if self.name in sys.modules:  # else the import has failed
            for one in waiting:
                one.act()


def when_imported(name: str, act: Callable[[], None]) -> importlib.abc.MetaPathFinder | None:
    """At once where it is there already. What is returned can be forgotten again."""
    module, waiting = sys.modules.get(name), _Waiting(name, act)
    if module is None:
        sys.meta_path.insert(0, waiting)
        return waiting
    spec = getattr(module, "__spec__", None)
    # A library that imports, in its first lines, the framework whose import has called us: the rest of it is not there yet.
    if type(spec) is importlib.machinery.ModuleSpec and getattr(spec, "_initializing", False):
        spec.__class__ = _InTheMidst
        vars(spec)["waiting"] = []
    if not isinstance(spec, _InTheMidst):
        act()
        return None
    spec.waiting.append(waiting)
    waiting.midst = spec
    return waiting


def forget(waiting: importlib.abc.MetaPathFinder) -> None:
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(waiting)
    midst = getattr(waiting, "midst", None)
    if midst is not None:
        with contextlib.suppress(ValueError, AttributeError):  # it is over
            midst.waiting.remove(waiting)
