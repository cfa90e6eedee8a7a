"""Gradients that a backward adds to what is there already, and that nobody sets to zero between two steps.

Nothing of the user's is run for it: the source of the backward says that it adds, the arrays say that they were not empty."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from sleuth.adapters.numpy.model_parts import layers


def adds_up(owner: Any) -> bool:
    """Does a backward of the owner, or of a layer in it, add to gradients that it does not make itself?"""
    kinds = {type(layer) for _, layer in [*layers(owner), ("", owner)]}
    methods = [m for kind in kinds for name in ("backward", "backprop") if inspect.isfunction(m := getattr(kind, name, None))]
    return any(_adds(inspect.unwrap(method)) for method in methods)


def _adds(method: Callable[..., Any]) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return False
    made = {
        _root(t) for node in ast.walk(tree) if isinstance(node, ast.Assign) for t in node.targets if not _adds_to_itself(node)
    }
    added = {_root(n.target) for n in ast.walk(tree) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)}
    added |= {_root(n.targets[0]) for n in ast.walk(tree) if isinstance(n, ast.Assign) and _adds_to_itself(n)}
    return any("." in text or "[" in text for text in added - made)


def _root(target: ast.expr) -> str:
    """self.dW of self.dW[:, i]; an entry under a name, self.grads['W'], stays what it is."""
    while isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
        target = target.value
    return ast.unparse(target)


def _adds_to_itself(node: ast.Assign) -> bool:
    value = node.value
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, ast.Add)
        and len(node.targets) == 1
        and any(_root(side) == _root(node.targets[0]) for side in (value.left, value.right))
    )
