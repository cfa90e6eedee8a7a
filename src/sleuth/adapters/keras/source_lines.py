"""Lines that are read off the user's source: of a function that Keras calls, of a name that is handed over."""

import ast
import functools
import inspect
import linecache
import textwrap
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from sleuth.adapters.keras.user_lines import compiled_spot, made_spot, weight_spot
from sleuth.core.location import Location, Spot, locate
from sleuth.core.runtime.place import is_users

Function = ast.FunctionDef | ast.AsyncFunctionDef


def code_of(thing: Any) -> CodeType | None:
    """Of a function of the user's own, or of an object that can be called like one."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    plain = thing if isinstance(thing, FunctionType | MethodType) else inspect.getattr_static(thing, "__call__", None)
    code = getattr(inspect.unwrap(plain), "__code__", None) if callable(plain) else None
    return code if isinstance(code, CodeType) and is_users(code.co_filename) else None


def answer_line(thing: Any) -> Location | None:
    """Where a function of the user's makes its answer: at its one `return`, else where it begins."""
    code = code_of(thing)
    if code is None:
        return None
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # typed in, or a lambda in the middle of a call
        return locate(code.co_filename, code.co_firstlineno)
    found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)]
    return locate(code.co_filename, first - 1 + found[0] if len(found) == 1 else code.co_firstlineno)


def method_line(thing: Any, name: str) -> Location | None:
    """Where a class of the user's own begins this method."""
    method = getattr(type(thing), name, None)
    code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
    return locate(code.co_filename, code.co_firstlineno) if code is not None and is_users(code.co_filename) else None


def given_line(spot: Spot, place: int, word: str) -> Location | None:
    """Where what is handed over at this call was chosen: the last line before it that gives the name its value, else the call."""
    call, scope = _call_at(spot)
    value = None if call is None else _argument(call, place, word)
    here = spot.location
    if not isinstance(value, ast.Name) or scope is None or here is None:
        return here
    assigned = [
        node.lineno
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign) and node.lineno < here.line
        if any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
    ]
    return locate(here.file, max(assigned)) if assigned else here


def compiled_with(model: Any, word: str) -> Location | None:
    """Where this argument of `compile` is written, else the call."""
    spot = compiled_spot(model)
    return None if spot is None else argument_line(spot, word) or spot.location


def weight_line(layer: Any, variable: Any) -> Location | None:
    """Where the user has said how this variable starts."""
    spot = weight_spot(layer, variable)
    if spot is not None:
        return argument_line(spot, "initializer", 1) or spot.location
    made = made_spot(layer)
    return None if made is None else argument_line(made, f"{variable.name}_initializer")


def argument_line(spot: Spot, word: str, place: int | None = None) -> Location | None:
    """Where an argument of the call that went on there is written; one that is a name for a plain setting stands where that is
    set. None: it was not given, or in a way that cannot be read."""
    call, scope = _call_at(spot)
    value = None if call is None else next((k.value for k in call.keywords if k.arg == word), None)
    if value is None and call is not None and place is not None and place < len(call.args):
        value = None if any(isinstance(a, ast.Starred) for a in call.args) else call.args[place]
    if value is None:
        return None
    set_at = _set_at(spot.code.co_filename, scope, value.id) if isinstance(value, ast.Name) else None
    return locate(spot.code.co_filename, set_at or value.lineno)


def _set_at(file: str, scope: ast.AST | None, name: str) -> int | None:
    """The one line that gives a name its value, where that is a number or a text."""
    if isinstance(scope, Function) and name in {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}:
        return None
    nodes = [n for n in _read(file).nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    given = [n for n in _read(file).nodes if isinstance(n, ast.Assign) and n.targets == nodes[:1]]
    return given[0].lineno if len(nodes) == 1 and given and isinstance(given[0].value, ast.Constant) else None


def _argument(call: ast.Call, place: int, word: str) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg == word), None)
    if named is not None or place < len(call.args):
        return named or call.args[place]
    # apply_gradients(zip(gradients, variables))
    pairs = call.args[0] if len(call.args) == 1 else None
    return pairs.args[place] if isinstance(pairs, ast.Call) and place < len(pairs.args) else None


class _Text(NamedTuple):
    tree: ast.Module | None
    nodes: list[ast.AST]
    calls: dict[tuple[int | None, ...], ast.Call]


@functools.lru_cache(maxsize=16)
def _read(file: str) -> _Text:
    """What a file says; nothing where it was changed since it was loaded."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return _Text(None, [], {})
    nodes = list(ast.walk(tree))
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    return _Text(tree, nodes, {(n.lineno, n.end_lineno, n.col_offset, n.end_col_offset): n for n in calls})


def _call_at(spot: Spot) -> tuple[ast.Call | None, ast.AST | None]:
    """The call that was going on there, and the function it stands in, or the file."""
    text = _read(spot.code.co_filename)
    positions = list(spot.code.co_positions())
    wanted = positions[spot.instruction // 2] if spot.instruction // 2 < len(positions) else (None,) * 4
    functions = [n for n in text.nodes if isinstance(n, Function) and n.name == spot.code.co_name]
    scope = next((n for n in functions if spot.code.co_firstlineno in (n.lineno, *(d.lineno for d in n.decorator_list))), None)
    return text.calls.get(tuple(wanted)), scope or text.tree
