"""Gradients that a backward adds to what is there already, and that nobody sets to zero between two steps.

Nothing of the user's is run for it: the source of the backward says that it adds, the arrays say that they were not empty."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.numpy.model_parts import layers

SAME = 1e-5


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


class Summed:
    """Gradients that the loop itself adds up, outside of the model: what the update is given against what backward returned.
    One small array is followed through every step."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._before: np.ndarray | None = None  # what the last step was given
        self.parts: list[np.ndarray] = []  # what the backwards since then gave

    def backward(self, found: Mapping[str, np.ndarray | None]) -> None:
        if self._path is None:
            sizes = {k: g.size for k, g in found.items() if g is not None and g.size > 1}
            self._path = min(sizes, key=lambda k: sizes[k]) if sizes else None
        gradient = found.get(self._path) if self._path is not None else None
        if gradient is not None:
            self.parts.append(np.array(gradient))

    def step(self, found: Mapping[str, np.ndarray | None], *, added: bool) -> tuple[bool, float | None]:
        """(was what an earlier step had used still in it, by which number was the sum of the parts divided; None where it is
        something else than a part of it). `added`: each backward adds to what is there, and the last one holds the sum."""
        given = found.get(self._path) if self._path is not None else None
        parts, before = self.parts, self._before
        self.parts, self._before = [], None if given is None else np.array(given)
        if given is None or not parts or any(p.shape != given.shape for p in parts):
            return False, None
        total = parts[-1] if added else np.sum(parts, axis=0)
        again = before is not None and bool(before.any()) and not _same(given, total) and _same(given - total, before)
        size = float((total * total).sum())
        share = float((given * total).sum()) / size if size > 0 else 0.0
        return again, 1 / share if share > 0 and _same(given, share * total) else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    size = float(np.abs(other).max(initial=0.0))
    return size > 0 and bool(np.abs(one - other).max(initial=0.0) <= SAME * size)
