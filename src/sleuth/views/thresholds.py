"""The thresholds of a check, each with the reason that its source gives in the comment above the constant."""

import ast
import inspect
from dataclasses import dataclass
from typing import Any

from sleuth.core.check import Check


@dataclass(frozen=True)
class Threshold:
    name: str
    value: Any
    reason: str = ""


def thresholds(check: Check) -> list[Threshold]:
    reasons = _reasons(check)
    return [Threshold(name, value, reasons.get(name, "")) for name, value in check.thresholds.items()]


def _reasons(check: Check) -> dict[str, str]:
    """By threshold. Empty where the source cannot be had."""
    module = inspect.getmodule(check.run)
    try:
        source = inspect.getsource(module) if module else ""
    except OSError:
        return {}
    tree = ast.parse(source)
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == check.run.__name__), None)
    if function is None:
        return {}
    comments = _comments_above_constants(tree, source.splitlines())
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {arg.arg: comments.get(default.id, "") for arg, default in pairs if isinstance(default, ast.Name)}


def _comments_above_constants(tree: ast.Module, lines: list[str]) -> dict[str, str]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            start = node.lineno - 1
            while start > 0 and lines[start - 1].startswith("#"):
                start -= 1
            comment = " ".join(line.lstrip("# ") for line in lines[start : node.lineno - 1])
            found[node.targets[0].id] = comment
    return found
