"""The user's variables: what stands in the frames below a call, in the objects there and in their modules."""

import ast
import inspect
import linecache
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

CONTAINERS = (list, tuple, deque, dict, set)
# Not looked into: they hold what they hold on purpose, or hold nothing of interest.
CLOSED = (np.ndarray, ModuleType, type, FunctionType, MethodType, str, bytes, int, float, complex)
# self.logger.losses is as deep as people go.
DEPTH = 2
MOST_FRAMES = 32
ADDING = {"append", "extend", "add", "update", "appendleft", "insert", "setdefault"}


@dataclass(frozen=True)
class Variable:
    name: str
    value: Any
    file: str
    lines: tuple[int, int]  # of the function it was found in


Parts = Callable[[Any], Iterator[tuple[str, Any]] | None]


def variables(frame: FrameType | None, seconds: float, parts: Parts, foreign: tuple[str, ...] = ()) -> Iterator[Variable]:
    """Innermost function first, then the modules of these functions. Ends when the time is up. `parts` tells of what only a
    framework knows: what is inside of it, by attribute, or None for anything else; `foreign` is where its files are."""
    ends = time.thread_time() + seconds
    frames, seen = list(_users_frames(frame, foreign)), set[int]()
    for one in frames:
        with _locals(one) as values:
            yield from _named(values, one, seen, ends, parts)
    for one in frames:
        yield from _named(one.f_globals, one, seen, ends, parts)


def adding_line(variable: Variable) -> Location | None:
    """The line that adds to a variable: `total += …`, `losses.append(…)`, `seen[i] = …`, `total = total + …`."""
    try:
        tree = ast.parse("".join(linecache.getlines(variable.file)))
    except (SyntaxError, ValueError):  # the file was changed since it was loaded
        return None
    lines = list(_adding(tree, variable.name))
    inside = [line for line in lines if variable.lines[0] <= line <= variable.lines[1]]
    # What is meter.total here is self.total in the class.
    own = "self" + variable.name[variable.name.rfind(".") :] if "." in variable.name else ""
    there = _adding(tree, own) if own and not lines else ()
    found = next(iter(inside or lines or there), None)
    return None if found is None else locate(variable.file, found)


def exchanges(file: str) -> Iterator[tuple[ast.Assign, list[str], list[str]]]:
    """The assignments of a file that call something, with the names they give and those they get."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
            given = [name for call in calls for a in (*call.args, *(k.value for k in call.keywords)) for name in _names(a)]
            if given:
                yield node, given, [name for target in node.targets for name in _names(target)]


def rebound(file: str, name: str, inside: ast.stmt) -> list[int]:
    """The lines that assign a name in the innermost loop around a statement of the file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While) and n.lineno < inside.lineno <= (n.end_lineno or 0)]
    loop = max(loops, key=lambda n: n.lineno, default=None)
    assigned = [n for n in ast.walk(loop) if isinstance(n, ast.Assign)] if loop is not None else []
    return sorted(n.lineno for n in assigned if any(name in _names(target) for target in n.targets))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Tuple | ast.List):
        for element in node.elts:
            yield from _names(element)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield ast.unparse(node)


def _adding(tree: ast.AST, name: str) -> Iterator[int]:
    return (node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr) and _adds(node, name))


def _adds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.AugAssign(target=target):
            return _text(target).partition("[")[0] == name
        case ast.Call(func=ast.Attribute(value=owner, attr=verb)):
            return verb in ADDING and _text(owner).partition("[")[0] == name
        case ast.Assign(targets=[ast.Subscript(value=owner)]):
            return _text(owner) == name
        case ast.Assign(targets=[target], value=value) if _text(target) == name:
            return any(isinstance(part, ast.Name | ast.Attribute) and _text(part) == name for part in ast.walk(value))
    return False


def _text(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""


def _users_frames(frame: FrameType | None, foreign: tuple[str, ...]) -> Iterator[FrameType]:
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        if is_users(frame.f_code.co_filename, foreign):
            yield frame
        frame = frame.f_back


@contextmanager
def _locals(frame: FrameType) -> Iterator[dict[str, Any]]:
    """Before Python 3.13 the frame keeps the dictionary that it gives: what is in it would live on with the function."""
    values = frame.f_locals
    try:
        yield values
    finally:
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
            values.clear()


def _named(values: dict[str, Any], frame: FrameType, seen: set[int], ends: float, parts: Parts) -> Iterator[Variable]:
    code = frame.f_code
    lines = (code.co_firstlineno, max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno))
    waiting = deque((name, value, 0) for name, value in list(values.items()) if not name.startswith("__"))
    while waiting and time.thread_time() < ends:
        name, value, depth = waiting.popleft()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield Variable(name, value, code.co_filename, lines)
        if depth < DEPTH:
            waiting.extend((f"{name}{part}", inner, depth + 1) for part, inner in _inside(value, parts))


def _inside(value: Any, parts: Parts) -> Iterator[tuple[str, Any]]:
    """Attributes of an object, entries of a small dictionary that has words for keys."""
    known = parts(value)
    if known is not None:
        yield from known
    elif isinstance(value, dict):
        words = [(f"[{key!r}]", inner) for key, inner in list(value.items())[:64] if isinstance(key, str)]
        yield from words if len(words) == len(value) else ()
    elif not isinstance(value, (*CLOSED, *CONTAINERS)) and _is_users_own(value):
        yield from ((f".{name}", inner) for name, inner in list(getattr(value, "__dict__", {}).items()) if name != "__wrapped__")


def _is_users_own(value: Any) -> bool:
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    # What is made in a notebook or at a prompt has no file.
    return type(value).__module__ != "builtins" and (file is None or is_users(file))
