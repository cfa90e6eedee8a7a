"""Loads the user's own files with our calls in them, and nobody else's. Python's caches of compiled files are left alone."""

import ast
import builtins
import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.source.rewriting import HOOK, Rewriter
from sleuth.core.runtime.source.sites import Sites

# Compilers that read a function's code: what they would compile must be the user's alone.
COMPILERS = ("numba", "cupy", "theano", "pytensor", "cython", "taichi")


class Hook:
    """Among the builtins while a script runs. What is called here says nothing until somebody listens."""

    def __init__(self) -> None:
        self.sites = Sites()
        self.trees: dict[str, ast.Module] = {}  # of the user's files, with our calls in them
        self.silence()

    def silence(self) -> None:
        self.before: Callable[..., None] = _nothing
        self.after: Callable[..., None] = _nothing
        self.told_before: Callable[..., None] = _nothing
        self.told: Callable[..., None] = _nothing
        self.passed: Callable[[int, Any], Any] = _as_it_is


def _nothing(*_: Any) -> None:
    pass


def _as_it_is(number: int, value: Any) -> Any:
    return value


def current() -> Hook | None:
    return getattr(builtins, HOOK, None)


class _Loader(importlib.machinery.SourceFileLoader):
    hears: "UsersFiles"

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        code = self.hears.compiled(self.get_data(path), path)
        return super().get_code(fullname) if code is None else code


class UsersFiles(importlib.abc.MetaPathFinder):
    """`frameworks`: a file that imports one of them is left as it is, and so are all once one is there."""

    def __init__(self, frameworks: Sequence[str]) -> None:
        self._others = (*frameworks, *COMPILERS)
        self._imports = re.compile(rf"^\s*(?:import|from)\s+(?:{'|'.join(self._others)})\b", re.M)

    def open(self) -> None:
        setattr(builtins, HOOK, Hook())
        sys.meta_path.insert(0, self)

    def close(self) -> None:
        """Files that were loaded keep their calls, which say nothing any more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        hook = current()
        if hook is not None:
            hook.silence()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        if spec.origin is None or not is_users(spec.origin):
            return None
        spec.loader = _Loader(fullname, spec.origin)
        spec.loader.hears = self
        return spec

    def compiled(self, source: bytes, file: str) -> CodeType | None:
        """None where the file is to be loaded as ever."""
        hook = current()
        if hook is None or any(name in sys.modules for name in self._others):
            return None
        try:
            text = source.decode("utf-8-sig")
            if self._imports.search(text):
                return None
            tree = ast.parse(text, file)
            rewritten = ast.fix_missing_locations(Rewriter(file, hook.sites).visit(tree))
            hook.trees[file] = rewritten
            return compile(rewritten, file, "exec", dont_inherit=True)
        except Exception:  # Python itself says what is wrong with it
            return None
