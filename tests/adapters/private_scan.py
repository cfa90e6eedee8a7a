"""Finds, in the sources of an adapter, the private names of a framework that it uses."""

import ast
from collections.abc import Iterator
from pathlib import Path

# Python's own.
OF_PYTHON = {"_getframe", "_replace", "_asdict", "_fields", "_initializing"}


def is_hidden(part: str) -> bool:
    return part.startswith("_") and not part.endswith("__") and part.strip("_") != ""


def is_private(dotted: str) -> bool:
    """Keras keeps what it does not promise in `keras.src`, others behind an underscore."""
    return any(is_hidden(part) for part in dotted.split(".")) or dotted.startswith("keras.src.")


class Names(ast.NodeVisitor):
    """Dotted names of some packages in one source: imports, chains of attributes and getattr, entries of sys.modules, texts."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self._packages = packages
        self._bound: dict[str, str] = {}
        self.found: dict[str, int] = {}  # with the first line

    def read(self, tree: ast.Module) -> dict[str, int]:
        for node in ast.walk(tree):  # first: what a name stands for, wherever in the file that is said
            self._bind(node)
        self.visit(tree)
        return self.found

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.split(".")[0]
                self._bound[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and (dotted := self._dotted(node.value)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    self._bound[target.id] = dotted

    def _dotted(self, node: ast.AST) -> str | None:
        """What an expression names that only follows names: `torch._C.x`, `getattr(torch, "_C")`, `sys.modules.get("torch")`."""
        match node:
            case ast.Name(id=name):
                return self._bound.get(name)
            case ast.Attribute(value=value, attr=part):
                owner = self._dotted(value)
                return None if owner is None else f"{owner}.{part}"
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(part)), *_]):
                owner = self._dotted(value)
                return None if owner is None else f"{owner}.{part}"
            case ast.Call(func=ast.Attribute(attr="get") as get, args=[ast.Constant(value=str(module)), *_]):
                return module if self._dotted(get) == "sys.modules.get" else None
            case ast.Subscript(value=value, slice=ast.Constant(value=str(module))):
                return module if self._dotted(value) == "sys.modules" else None
        return None

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names = [node.value] if all(part.isidentifier() for part in node.value.split(".")) else []
        else:
            names = [dotted] if (dotted := self._dotted(node)) else []
        for name in names:
            if name.split(".")[0] in self._packages and is_private(name):
                self.found.setdefault(name, node.lineno)
        if not (names and isinstance(node, ast.Attribute | ast.Call | ast.Subscript)):  # else its parts are said already
            self.generic_visit(node)


def names_in(source: str, packages: tuple[str, ...]) -> dict[str, int]:
    return Names(packages).read(ast.parse(source))


def attributes_in(source: str) -> dict[str, int]:
    """Hidden attributes of anything but `self`, and texts that look like one: `getattr(x, "_y")`, `vars(x)["_y"]`."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            name = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            name = node.value
        else:
            continue
        if is_hidden(name) and name not in OF_PYTHON:
            found.setdefault(name, node.lineno)
    return found


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def defined_in(source: str) -> Iterator[str]:
    """What a source makes itself: functions, classes, variables, attributes of `self`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            yield node.attr


def sources(*folders: Path) -> Iterator[tuple[Path, str]]:
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            yield file, file.read_text(encoding="utf-8")
