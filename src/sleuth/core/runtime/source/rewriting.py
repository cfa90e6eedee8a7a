"""The user's source with calls put beside its updates and losses. Lines, values and the order of everything else stay."""

import ast
from collections.abc import Sequence
from typing import TypeVar

from sleuth.core.runtime.source.sites import LOSS, Sites, Telling, Update, is_pure, root, update_of

# Among Python's builtins: no module's own names change.
HOOK = "__sleuth_hook__"
# A function that something else turns into another one (numba.njit, …) is left as it is.
PLAIN = ("staticmethod", "classmethod", "property", "abstractmethod", "contextmanager", "override")
KEEPING = ("append", "add")

Node = TypeVar("Node", bound=ast.AST)


class Rewriter(ast.NodeTransformer):
    def __init__(self, file: str, sites: Sites) -> None:
        self._file, self._sites = file, sites
        self._function: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if not all(_last_name(decorator) in PLAIN for decorator in node.decorator_list):
            return node
        self._function.append(node.name)
        try:
            return self.generic_visit(node)
        finally:
            self._function.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        if not isinstance(node.op, ast.Add | ast.Sub):
            return node
        telling = self._telling(node.target, "added")
        if telling is not None:
            call = self._call("told", telling, _loaded(node.target))
            before = self._call("told_before", telling, _loaded(node.target))
            return [_at(before, node), node, _at(call, node)]
        update = update_of(node.target, node.value, added=True, file=self._file, function=self._name)
        return node if update is None else self._around(node, [(root(node.target), update)])

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        if len(node.targets) != 1:
            return node
        target, value = node.targets[0], node.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(targets) else [value] * len(targets)
        found: list[tuple[ast.expr, Update]] = []
        after: list[ast.stmt] = []
        for one, made in zip(targets, values, strict=True):
            telling = self._telling(one, "assigned")
            if telling is not None:
                after.append(_at(self._call("told", telling, _loaded(one)), node))
                continue
            update = update_of(one, made, added=False, file=self._file, function=self._name)
            if update is not None:
                found.append((root(one), update))
        if not found:
            return [node, *after] if after else node
        around = self._around(node, found)
        return [*around, *after]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None and self._function and LOSS.search(self._function[-1]):
            number = self._sites.add(Telling(self._file, node.lineno, self._name, self._name, "returned"))
            node.value = _at(self._call("passed", number, node.value).value, node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Attribute(value=owner, attr=method), args=[given], keywords=[]) if method in KEEPING:
                name = _last_name(owner)
                if LOSS.search(name):
                    number = self._sites.add(Telling(self._file, node.lineno, self._name, name, "kept"))
                    node.value.args = [_at(self._call("passed", number, given).value, given)]
        return node

    @property
    def _name(self) -> str:
        return self._function[-1] if self._function else ""

    def _telling(self, target: ast.expr, how: str) -> int | None:
        if not isinstance(target, ast.Name | ast.Attribute) or not is_pure(target):
            return None
        name = target.id if isinstance(target, ast.Name) else target.attr
        return self._sites.add(Telling(self._file, target.lineno, self._name, name, how)) if LOSS.search(name) else None

    def _around(self, node: ast.stmt, found: Sequence[tuple[ast.expr, Update]]) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        for target, update in found:
            number, where = self._sites.add(update), _where(target)
            # Whatever is read here, the user's own line reads as well: what is not there fails as it would have.
            old = _parsed(update.alias, node) if update.alias else _loaded(target)
            before.append(_at(self._call("before", number, old), node))
            after.append(_at(self._call("after", number, _loaded(target), *where), node))
        return [*before, node, *after]

    def _call(self, method: str, number: int, *given: ast.expr) -> ast.Expr:
        hook = ast.Attribute(ast.Name(HOOK, ast.Load()), method, ast.Load())
        return ast.Expr(ast.Call(hook, [ast.Constant(number), *given], []))


def _where(target: ast.expr) -> list[ast.expr]:
    """(the object that the target belongs to, and its key) beside its value: which of several like it."""
    if isinstance(target, ast.Name):
        return []
    key = target.slice if isinstance(target, ast.Subscript) else ast.Constant(target.attr)  # type: ignore[attr-defined]
    owner: ast.expr = target.value  # type: ignore[attr-defined]
    while isinstance(owner, ast.Subscript) and not isinstance(owner.value, ast.Name):
        owner = owner.value
    if isinstance(target, ast.Subscript) and isinstance(owner, ast.Attribute):  # self.params["W"]
        owner = owner.value
    return [_loaded(owner), _loaded(key)]


def _parsed(text: str, at: ast.AST) -> ast.expr:
    parsed: ast.expr = ast.parse(text, mode="eval").body
    for part in ast.walk(parsed):
        ast.copy_location(part, at)
    return parsed


def _loaded(node: ast.expr) -> ast.expr:
    """The same expression, to be read."""
    return _parsed(ast.unparse(node), node)


def _at(new: Node, old: ast.AST) -> Node:
    """What is ours stands on the user's line; what is the user's stays where it was."""
    for node in ast.walk(new):
        if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
            ast.copy_location(node, old)
    return new


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call):
        node = node.func
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
