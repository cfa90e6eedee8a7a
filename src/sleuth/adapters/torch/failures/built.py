"""Where the user wrote a layer: for models that are made of torch's own parts no line of the user's is on the way."""

import ast
import linecache
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import nn

from sleuth.adapters.torch.failures.scene import ends
from sleuth.adapters.torch.place import is_users
from sleuth.core.location import Location, locate


def built_at(module: nn.Module | None) -> Location | None:
    """The one line that makes a layer of this kind and size; None where there is none, or more than one."""
    sizes = ends(module)
    if module is None or not sizes:
        return None
    for files in (_calling(), loaded_files()):
        found = [(file, line) for file in files for line in _lines(file, type(module).__name__, sizes)]
        if found:
            return locate(*found[0]) if len(found) == 1 else None
    return None


def _lines(file: str, kind: str, sizes: tuple[Any, ...]) -> Iterator[int]:
    text = "".join(linecache.getlines(file))
    if f"{kind}(" not in text:
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the file was changed since it was loaded
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) == kind:
            given = [*node.args, *(k.value for k in node.keywords)][: len(sizes)]
            if tuple(g.value if isinstance(g, ast.Constant) else None for g in given) == sizes:
                yield node.lineno


def _name(function: ast.expr) -> str | None:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def _calling() -> set[str]:
    """The user's files that called us."""
    return {f.f_code.co_filename for f in _stack() if is_users(f.f_code.co_filename)}


def loaded_files() -> set[str]:
    """The user's files that were imported: the one with the factory, a models.py beside the script."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {file for file in files if isinstance(file, str) and file.endswith(".py") and is_users(file)}


def _stack() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
