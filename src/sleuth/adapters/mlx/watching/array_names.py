"""Which arrays belong to the model that is watched, each under its first path."""

import sys
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten

from sleuth.adapters.mlx.model_parts import is_buffer, last_paths, parameters
from sleuth.core.runtime.place import is_users


class Names:
    def __init__(self, model: nn.Module) -> None:
        self._first_path = {last: first for first, last in last_paths(model).items()}

    def named(self, tree: Any, part: str = "") -> dict[str, mx.array]:
        """`part`: the path of the module that the tree belongs to."""
        whole = tree_flatten(tree, prefix=f".{part}" if part else "")
        return {self._first_path[n]: a for n, a in whole if n in self._first_path and isinstance(a, mx.array)}

    def is_known(self, tree: Any) -> bool:
        """Of gradients that no model came with: do all of them bear names of this one?"""
        names = [name for name, _ in tree_flatten(tree)] if tree else []
        return bool(names) and all(name in self._first_path for name in names)


def weights(model: nn.Module | None) -> dict[str, mx.array]:
    return {} if model is None else {e.path: e.array for e in parameters(model) if e.trainable and not is_buffer(e)}


def variable_of(thing: Any) -> str | None:
    """The user's variable that holds it where it is at work."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            for name, value in (*frame.f_locals.items(), *frame.f_globals.items()):
                if value is thing and not name.startswith("_"):
                    return str(name)
        frame = frame.f_back
    return None
