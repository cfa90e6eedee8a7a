"""Which line of a hand-written backward makes the gradient of a parameter: as it was seen to, or as the names tell."""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.numpy.array_lines import Birth, Births, place
from sleuth.adapters.numpy.forms.functions import ByHand
from sleuth.adapters.numpy.model_parts import holders, layers
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users


class Followed:
    """One backward, line by line. A backward that changes the weights itself has no gradient to show: then the line counts
    that changed them."""

    def __init__(self, births: Births, gradients: Mapping[str, np.ndarray | None], parameters: Mapping[str, np.ndarray]) -> None:
        self._births = births
        self._made = {path: self._maker(gradients.get(path), array) for path, array in parameters.items()}

    def _maker(self, gradient: np.ndarray | None, parameter: np.ndarray) -> Birth | None:
        made = None if gradient is None else self._births.maker(gradient)
        if made is not None:
            return made
        change = self._births.last_change(parameter)
        before = None if change is None else self._births.upstream(change)
        # One number that the weights were changed by.
        return before if before is not None and before.shape == () else change

    def line(self, path: str, *, upstream: bool) -> Location | None:
        """`upstream`: not the line that makes this gradient but the one that makes what flows into it."""
        made = self._made.get(path)
        return place((self._births.upstream(made) or made) if made is not None and upstream else made)

    def siblings(self, path: str) -> tuple[str, ...]:
        """Parameters whose gradients are made from the same thing that flows back, such as weight and bias of one layer."""
        flowing = {p: self._births.upstream(made) for p, made in self._made.items() if made is not None}
        mine = flowing.get(path)
        return () if mine is None else tuple(p for p, birth in flowing.items() if birth is mine and p != path)


def backward_line(model: Any, name: str, array: Any, *, upstream: bool) -> Location | None:
    """The same by the names of variables."""
    path, attribute = holders(model).get(id(array), ("", name))
    written = getattr(model, "root", None) or model
    layer = dict(layers(model)).get(path, written)
    key = name if isinstance(model, ByHand) else attribute.rsplit(".", 1)[-1]
    for owner, word in ((layer, key), (written, name.rsplit(".", 1)[-1])):
        for function in _ways_back(owner):
            found = _line(function, word, upstream)
            if found is not None:
                return found
    return next((_beginning(f) for owner in (layer, written) for f in _ways_back(owner) if _beginning(f)), None)


def _ways_back(owner: Any) -> Iterator[Any]:
    names = ("backward", "backprop", "written", "gradients", "compute_loss", "loss", "train_step")
    for function in (getattr(owner, name, None) for name in names):
        code = getattr(function, "__code__", None)
        if code is not None and is_users(code.co_filename):
            yield function


def _line(function: Any, word: str, upstream: bool) -> Location | None:
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    file = function.__code__.co_filename
    marks = {word, f"d{word}", f"d_{word}", f"grad_{word}", f"{word}_grad", f"{word}_gradient", f"g{word}", f"grad{word}"}
    made = [(node, value) for node, name, value in _assignments(tree) if name in marks and name != word]
    made = made or [(node, value) for node, name, value in _assignments(tree) if name in marks]
    if not made:
        # It is handed to somebody who fills it: grads["b1"] among the arguments of a call.
        asked = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value in marks]
        return locate(file, first + asked[-1].lineno - 1) if asked else None
    node, value = made[-1]
    if upstream:
        node = _flows_in(tree, value, node) or node
    return locate(file, first + max(node.lineno, 1) - 1)


def _assignments(tree: ast.AST) -> Iterator[tuple[Any, str, ast.expr]]:
    """(node, name, value): of `dW = …`, `self.dW = …`, `grads["dW"] = …` and of the entries of a dict."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                name = _name(target)
                if name:
                    yield node, name, node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from ((node, _name(t), v) for t, v in zip(target.elts, node.value.elts, strict=False))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield value if isinstance(value, ast.Call | ast.BinOp) else key, key.value, value


def _name(target: ast.expr) -> str:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""


def _flows_in(tree: ast.AST, value: ast.expr, made: Any) -> Any:
    """The last line before that makes one of the names that the value uses, the one that is no input of the function."""
    used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    found = [node for node, name, _ in _assignments(tree) if name in used and node.lineno <= made.lineno and node is not made]
    return max(found, key=lambda node: node.lineno, default=None)


def _beginning(function: Any) -> Location:
    return locate(function.__code__.co_filename, function.__code__.co_firstlineno)
