"""The line of the user's that a layer or a weight comes from: the one that made it where that was seen, else the one in its
owner's class that fills the attribute."""

import ast
import inspect
import linecache
import re
from collections.abc import Iterable
from functools import lru_cache
from types import FrameType
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.assignment import class_line
from sleuth.adapters.torch.place import is_users
from sleuth.adapters.torch.watching.created_at import made_at, values_set_at
from sleuth.core.location import Location, locate

# `p.requires_grad = False`, `trunk.requires_grad_(False)`; not where something is unfrozen or made.
FREEZES = re.compile(r"\.requires_grad(\s*=(?!=)(?!\s*True\b)|_\((?!\)|True\b))")
# `group["lr"] = rate`, also `*=`.
SETS_RATE = re.compile(r"\[\s*[\"']lr[\"']\s*\]\s*[-+*/]?=(?!=)")
SETS_FLAG = re.compile(r"^\s*[\w.\[\]]+\.training\s*=(?!=)")


def layer_line(model: nn.Module, path: str) -> Location | None:
    module = _module(model, path)
    if module is None:
        return None
    return made_at(module) or _attribute_line(model, path) or (None if path else class_line(type(module)))


def weight_line(model: nn.Module, path: str, parameter: torch.Tensor) -> Location | None:
    """Where the user gave it its first values; of a weight that belongs to no layer of torch, where it was made."""
    found = values_set_at(parameter)
    owner, _, name = path.rpartition(".")
    module = _module(model, owner)
    if found is not None or module is None or type(module).__module__.startswith("torch."):
        return found
    file, values = _attributes(_kind(module))
    value = values.get(name)
    return locate(file, value.lineno) if value is not None else None


def freezing_line(frame: FrameType | None) -> Location | None:
    """The line that takes parameters out of the training, in the files that the call comes from: only where there is one."""
    found = _lines_with(FREEZES, _files(frame))
    return found[0] if len(found) == 1 else None


def flag_line(frame: FrameType | None) -> Location | None:
    """The line that says training without telling the layers."""
    return next(iter(_lines_with(SETS_FLAG, _files(frame))), None)


def rate_line(files: Iterable[str]) -> Location | None:
    """The line that sets the learning rate by hand, where there is one."""
    found = _lines_with(SETS_RATE, files)
    return found[0] if len(found) == 1 else None


def _files(frame: FrameType | None) -> list[str]:
    found: dict[str, None] = {}
    while frame is not None:
        found[frame.f_code.co_filename] = None
        frame = frame.f_back
    return [file for file in found if is_users(file)]


def _lines_with(pattern: re.Pattern[str], files: Iterable[str]) -> list[Location]:
    lines = [(file, number, text) for file in files for number, text in enumerate(linecache.getlines(file), 1)]
    return [locate(file, number) for file, number, text in lines if pattern.search(text)]


def _kind(module: nn.Module) -> Any:
    return type(module)


def _module(model: nn.Module, path: str) -> nn.Module | None:
    try:
        return model.get_submodule(path)
    except (AttributeError, RuntimeError):  # a compiled module of TorchScript refuses
        return None


def _attribute_line(model: nn.Module, path: str) -> Location | None:
    """`self.head = nn.Linear(…)`; of a layer in `self.net = nn.Sequential(…)` the argument with its number."""
    owner, _, name = path.rpartition(".")
    holder = _module(model, owner)
    if holder is None or not path:
        return None
    if not name.isdigit():
        file, values = _attributes(_kind(holder))
        value = values.get(name)
        return locate(file, value.lineno) if value is not None else None
    above, _, word = owner.rpartition(".")
    keeper = _module(model, above)
    file, values = _attributes(_kind(keeper)) if keeper is not None and owner else ("", {})
    parts = _parts(values.get(word))
    if len(parts) != len(holder._modules) or any(isinstance(part, ast.Starred) for part in parts):
        return None
    return locate(file, parts[int(name)].lineno)


def _parts(value: ast.expr | None) -> list[ast.expr]:
    match value:
        case ast.Call(args=[ast.List(elts=parts)]) | ast.Call(args=parts):
            return parts
    return []


@lru_cache(maxsize=256)
def class_text(kind: Any) -> tuple[str, ast.AST]:
    """The file and the text of a class of the user's; nothing for others."""
    if kind.__module__.startswith("torch."):
        return "", ast.Module([], [])
    try:
        file = inspect.getsourcefile(kind) or ""
        tree = ast.parse("".join(linecache.getlines(file)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return "", ast.Module([], [])
    return file, _class(tree, kind, file) if is_users(file) else ast.Module([], [])


@lru_cache(maxsize=256)
def _attributes(kind: Any) -> tuple[str, dict[str, ast.expr]]:
    """What the class gives to attributes of its own: only where there is one such line for a name."""
    file, text = class_text(kind)
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(text):
        for name, value in _filled(node):
            found.setdefault(name, []).append(value)
    return file, {name: values[0] for name, values in found.items() if len(values) == 1}


def _class(tree: ast.Module, kind: type, file: str) -> ast.AST:
    """By its name; of several the first line of one of its functions tells."""
    named = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    codes = [f.__code__ for f in vars(kind).values() if inspect.isfunction(f)]
    # A decorated function stands in the decorator's file, and our own patch in ours.
    lines = [code.co_firstlineno for code in codes if code.co_filename == file]
    fits = [n for n in named if all(n.lineno <= line <= (n.end_lineno or 0) for line in lines)]
    return fits[0] if len(fits) == 1 else ast.Module([], [])


def _filled(node: ast.AST) -> list[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            targets = [target]
        case _:
            return []
    if isinstance(value, ast.Constant) and value.value is None:
        return []
    own: list[Any] = [t for t in targets if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name)]
    return [(t.attr, value) for t in own if t.value.id == "self"]
