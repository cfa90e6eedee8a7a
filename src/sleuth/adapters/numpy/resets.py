"""Does the user's own code set gradients to zero where no examination runs it: in the loop, line by line?"""

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from sleuth.adapters.numpy.forms.layers import gradient_of
from sleuth.adapters.numpy.model_parts import is_weight, layers
from sleuth.core.runtime.place import is_users

ZEROS = ("zeros", "zeros_like")


def resets_in_line(model: Any) -> bool:
    """A line outside of every class that is not the model's sets a gradient of one of its layers to zero."""
    root = getattr(model, "root", None) or model
    owners = [layer for _, layer in layers(model)] + ([] if isinstance(root, list | tuple) else [root])
    names = {name for owner in owners for name in _gradient_names(owner)}
    kinds = {kind.__name__ for owner in owners for kind in type(owner).__mro__}
    return any(names & _zeroed(file, frozenset(kinds)) for file in _files(owners))


def _gradient_names(owner: Any) -> Iterator[str]:
    held = getattr(owner, "__dict__", {})
    for key, value in held.items():
        gradient = gradient_of(owner, key) if is_weight(key, value) else None
        yield from (name for name, other in held.items() if gradient is not None and other is gradient)


def _files(owners: list[Any]) -> Iterator[str]:
    """Where the layers are written, and what is running now."""
    modules = [m for owner in owners if isinstance(m := sys.modules.get(type(owner).__module__), ModuleType)]
    files = {getattr(module, "__file__", None) for module in modules}
    frame: Any = sys._getframe(1)
    while frame is not None:
        files.add(frame.f_code.co_filename)
        frame = frame.f_back
    yield from (file for file in files if file and file.endswith(".py") and is_users(file))


@lru_cache(maxsize=32)
def _zeroed(file: str, kinds: frozenset[str]) -> frozenset[str]:
    """Names of attributes that some line sets to zero. Where they are made first does not count, nor do other classes."""
    try:
        with open(file, encoding="utf-8") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(name for name in _in(tree, kinds) if name)


def _in(node: ast.AST, kinds: frozenset[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and child.name not in kinds:
            continue
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            continue
        if isinstance(child, ast.Assign):
            for target in child.targets:
                yield from _pairs(target, child.value)
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute) and child.func.attr == "fill":
            yield _attribute(child.func.value) if child.args and _is_zero(child.args[0]) else ""
        yield from _in(child, kinds)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, other)
    elif _is_zero(value):
        yield _attribute(target)


def _attribute(target: ast.expr) -> str:
    """dW of layer.dW and of layer.dW[:]."""
    target = target.value if isinstance(target, ast.Subscript) else target
    return target.attr if isinstance(target, ast.Attribute) else ""


def _is_zero(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and value.value == 0
    function = value.func if isinstance(value, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    return name in ZEROS
