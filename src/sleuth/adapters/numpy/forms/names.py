"""What the names of gradients, and of what a function returns, tell."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any


def by_marked_name(raw: Any, names: list[str]) -> dict[str, Any]:
    """Gradients that are called as the weights are, or with a mark before or behind: dW1, grad_W1, W1_grad."""
    if not isinstance(raw, Mapping):
        return {}
    flat = {key: value for key, value in raw.items() if isinstance(key, str)}
    found: dict[str, Any] = {}
    for name in names:
        marks = (name, f"d{name}", f"d_{name}", f"grad_{name}", f"{name}_grad", f"g{name}", f"grad{name}", f"dL_d{name}")
        key = next((mark for mark in marks if mark in flat), None)
        if key is not None:
            found[name] = flat[key]
    return found


def returned_names(function: Callable[..., Any] | None) -> list[str]:
    """Of `return z1, a1, z2, a2`: these names."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError):
        return []
    rows = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    names = [item.id for item in rows[-1].elts if isinstance(item, ast.Name)] if rows else []
    return names if rows and len(names) == len(rows[-1].elts) else []
