"""Where the user's script writes down a weight of a plain tree, by its names: the one place where a dict gets that key; and where
it names a function that is handed to a layer and called from elsewhere."""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.adapters.jax.words import FUNCTIONS
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users

# Longer scripts are not read for it.
MOST_BYTES = 1 << 20
# What people call that which comes last.
LAST = re.compile(r"final|last|(?<![a-z])out|head", re.IGNORECASE)


def written_at(path: str) -> Location | None:
    """None where no place, or more than one, fits."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    words = [word for word in path.split(".") if not word.isdigit()]
    if file is None or not words or not is_users(file):
        return None
    found = {k.line for k in _keys(file) if k.keys[-len(words) :] == tuple(words)}
    if not found and len(words) > 1:  # what stands below the key is made by a function
        above = [k for k in _keys(file) if k.keys == tuple(words[:-1])]
        found = {line for k in above for line in _inside(file, k.made_by, words[-1])} or {k.line for k in above}
    return locate(file, found.pop()) if len(found) == 1 else None


@dataclass(frozen=True)
class Key:
    """Of a dict in the script, with those above it."""

    line: int
    keys: tuple[str, ...]
    made_by: str = ""  # the function of the script that makes its value
    within: str = ""  # the function that it stands in


def _inside(file: str, function: str, word: str) -> set[int]:
    """Where a function of the script writes that key."""
    return {k.line for k in _keys(file) if function and k.within == function and k.keys == (word,)}


def function_line(word: str, called: Location | None) -> Location | None:
    """Of an activation at the end of a model: `called` is where it was called, which need not name it."""
    if called is None or word not in FUNCTIONS.values() or word in called.text:
        return called
    named = _functions(called.file, word)
    last = {line for line, keyword in named if LAST.search(keyword)}
    lines = last or {line for line, _ in named}
    return locate(called.file, lines.pop()) if len(lines) == 1 else called


@functools.lru_cache(maxsize=16)
def _functions(file: str, word: str) -> tuple[tuple[int, str], ...]:
    """Each line that names it, with the keyword that it is given to, if any."""
    tree = _tree(file)
    found = []
    for node in () if tree is None else ast.walk(tree):
        for keyword, value in _values(node):
            name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
            if FUNCTIONS.get(name) == word:
                found.append((value.lineno, keyword))
    return tuple(found)


def _values(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """What stands inside it, but for imports, attributes of modules and functions that are called there and then."""
    if isinstance(node, ast.keyword):
        yield node.arg or "", node.value
    elif isinstance(node, ast.Call):
        yield from (("", value) for value in node.args)
    elif not isinstance(node, ast.Attribute):
        yield from (("", child) for child in ast.iter_child_nodes(node))


@functools.lru_cache(maxsize=4)
def _keys(file: str) -> tuple[Key, ...]:
    tree = _tree(file)
    return () if tree is None else tuple(_in(tree, (), ""))


def _tree(file: str) -> ast.AST | None:
    try:
        source = Path(file).read_bytes()
        return ast.parse(source) if len(source) <= MOST_BYTES else None
    except (OSError, SyntaxError, ValueError):
        return None


def _in(node: ast.AST, above: tuple[str, ...], within: str) -> Iterator[Key]:
    inside: tuple[ast.AST, ...] = tuple(ast.iter_child_nodes(node))
    pairs: list[tuple[int, str, ast.AST]] = []
    if isinstance(node, ast.Dict):
        known = zip(node.keys, node.values, strict=True)
        pairs = [(k.lineno, k.value, v) for k, v in known if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        pairs = [(k.value.lineno, k.arg, k.value) for k in node.keywords if k.arg is not None]
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        key = node.targets[0].slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            pairs = [(node.lineno, key.value, node.value)]
    within = node.name if isinstance(node, ast.FunctionDef) else within
    for line, word, value in pairs:
        yield Key(line, (*above, word), _called(value), within)
        yield from _in(value, (*above, word), within)
    below = {id(value) for _, _, value in pairs}
    for child in inside:
        if id(child) not in below:
            # Only what stands directly in a dict stands below its key.
            yield from _in(child, above if isinstance(node, ast.Dict) else (), within)


def _called(value: ast.AST) -> str:
    return value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
