"""The user's function in which something failed: its text as a tree, where its names get their values, what its loops are."""

import ast
import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FrameType, TracebackType
from typing import Any

from torch import nn

from sleuth.adapters.torch.place import is_users
from sleuth.core.location import Location, Spot, locate

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class Function:
    """One of the user's frames in a traceback."""

    frame: FrameType
    line: int
    instruction: int = -1

    @property
    def file(self) -> str:
        return self.frame.f_code.co_filename

    @cached_property
    def scope(self) -> Scope | None:
        tree = tree_of(self.file)
        return None if tree is None else _scope(tree, self.frame.f_code)

    def at(self, node: ast.AST | int | None) -> Location | None:
        line = node if isinstance(node, int) else getattr(node, "lineno", None)
        return None if line is None else locate(self.file, line)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Without those of functions inside."""
        return [] if self.scope is None else list(_own(self.scope))

    @property
    def failing(self) -> ast.AST | None:
        """The expression that raised: Python knows its columns."""
        positions = list(self.frame.f_code.co_positions())
        place = self.instruction // 2
        if not 0 <= place < len(positions):
            return None
        wanted = positions[place]
        found = [n for n in self.nodes if isinstance(n, ast.expr | ast.stmt) and _span(n) == wanted]
        return found[-1] if found else None

    @property
    def loop(self) -> ast.AST | None:
        """The innermost loop around the line."""
        around = [n for n in self.nodes if isinstance(n, LOOPS) and n.body[0].lineno <= self.line <= (n.end_lineno or 0)]
        return max(around, key=lambda n: n.lineno, default=None)

    def bindings(self, name: str) -> list[ast.stmt]:
        """The statements that give a name its value, in the order of the text."""
        found = [n for n in self.nodes if isinstance(n, ast.stmt) and name in bound(n)]
        return sorted(found, key=lambda n: n.lineno)

    def binding(self, name: str) -> ast.stmt | None:
        """The one that gave the value it has at the line: the last above it, else the last of its loop."""
        every = self.bindings(name)
        above = [n for n in every if n.lineno < self.line]
        return (above or every)[-1] if every else None

    def lookup(self, node: ast.AST | None) -> Any:
        """The value of a plain name, attribute or constant, with nothing of the user's run; None where it is not known."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                inner = self.frame.f_locals
                return inner[name] if name in inner else self.frame.f_globals.get(name)
            case ast.Attribute(value=inner, attr=name):
                owner = self.lookup(inner)
                inside = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
                if isinstance(owner, nn.Module):
                    inside |= {**owner._parameters, **owner._buffers, **owner._modules}
                return inside.get(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.lookup(operand)
                return -value if isinstance(value, int | float) else None
            case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
                owner = self.lookup(inner)
                try:
                    return owner[key] if type(owner) in (dict, list, tuple) else None
                except LookupError:
                    return None
        return None


def functions(trace: TracebackType | None) -> list[Function]:
    """The user's, innermost first."""
    found = []
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found.append(Function(trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return found[::-1]


def call_at(spot: Spot) -> tuple[ast.Call | None, Scope | None]:
    """The call that was going on there, and the function it stands in."""
    tree = tree_of(spot.code.co_filename)
    scope = None if tree is None else _scope(tree, spot.code)
    positions = list(spot.code.co_positions())
    place = spot.instruction // 2
    if scope is None or not 0 <= place < len(positions):
        return None, scope
    wanted = positions[place]
    found = [n for n in _own(scope) if isinstance(n, ast.Call) and _span(n) == wanted]
    return (found[-1] if found else None), scope


def tree_of(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):  # the file was changed since it was loaded
        return None


def bound(statement: ast.AST) -> list[str]:
    match statement:
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _targets(target)]
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            return _targets(target)
        case ast.With(items=items):
            return [name for item in items if item.optional_vars is not None for name in _targets(item.optional_vars)]
    return []


def names_in(node: ast.AST | None) -> list[str]:
    """Names and dotted names that are read, outermost first: `self.h` and not `self`."""
    if node is None:
        return []
    if isinstance(node, ast.Attribute) and _dotted(node):
        return [ast.unparse(node)]
    if isinstance(node, ast.Name):
        return [node.id]
    return [name for child in ast.iter_child_nodes(node) for name in names_in(child)]


def writes_in_place(node: ast.AST) -> list[str]:
    """The names of what a statement or call changes where it stands, were they tensors."""
    match node:
        case ast.AugAssign(target=target):
            return [_owner(target)]
        case ast.Assign(targets=targets):
            return [_owner(t) for t in targets if isinstance(t, ast.Subscript)]
        case ast.Call(func=ast.Attribute(value=owner, attr=verb)) if verb.endswith("_") and not verb.endswith("__"):
            return [_owner(owner)]
        case ast.Call(args=args, keywords=keywords):
            inplace = any(k.arg == "inplace" and getattr(k.value, "value", None) is True for k in keywords)
            return [_owner(args[0])] if inplace and args else [_owner(k.value) for k in keywords if k.arg == "out"]
    return []


def _owner(node: ast.AST) -> str:
    """Of `h[:, 0]`, `h.data` and `h.view(-1)`: h."""
    while True:
        match node:
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="data"):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case _:
                return ast.unparse(node)


def _dotted(node: ast.Attribute) -> bool:
    inner: ast.AST = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return isinstance(inner, ast.Name)


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Tuple | ast.List):
        return [name for element in node.elts for name in _targets(element)]
    if isinstance(node, ast.Starred):
        return _targets(node.value)
    return [ast.unparse(node)] if isinstance(node, ast.Name | ast.Attribute) else []


def _scope(tree: ast.Module, code: CodeType) -> Scope | None:
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            return node
    return None


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, INNER):
            yield from _own(child)


def _span(node: ast.expr | ast.stmt) -> tuple[int | None, ...]:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
