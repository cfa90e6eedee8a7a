"""What stands for a tree of weights where the rest of the adapter wants a module: it bears the same names."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map

from sleuth.adapters.mlx.model_parts import parameters

# A matrix and its bias: less is no network, and mostly what somebody looks for the gradient of, such as an image.
LEAST_ARRAYS = 2
# Two steps of the weights, and a gradient, are held: of larger ones that would be felt.
MOST_BYTES = 256 << 20

Named = Mapping[str, mx.array]


class Tree(nn.Module):
    """The weights are values, and others take their place at each step; `code` is that of the function of them."""

    def __init__(self, weights: Any, code: Any = None) -> None:
        super().__init__()
        self._user = _Form(weights)  # an object: a module would look into anything else
        self._code = code
        self._in_place = False
        for key, value in _items(weights):
            self[str(key)] = _opened(value)

    @property
    def code(self) -> Any:
        return self._code

    @property
    def in_place(self) -> bool:
        """The user writes new values into the same arrays."""
        return self._in_place

    def set_in_place(self, is_so: bool) -> None:
        self._in_place = is_so

    def hold(self, weights: Named) -> None:
        for name, array in weights.items():
            *above, last = name.split(".")
            owner: Any = self
            for part in above:
                owner = owner[int(part)] if isinstance(owner, list) else owner[part]
            owner[int(last) if isinstance(owner, list) else last] = array

    def fits(self, weights: Named) -> bool:
        return shapes_of(weights) == self._user.shapes

    def as_given(self) -> Any:
        """What it holds now, in the user's form: while a gradient is taken, what that is taken of."""
        held = dict(tree_flatten(self.parameters()))
        arrays = iter([held[name] for name in self._user.shapes])
        return tree_map(lambda _: next(arrays), self._user.form)


class _Form:
    def __init__(self, weights: Any) -> None:
        self.form = tree_map(lambda _: 0, weights)
        self.shapes = shapes_of(named(weights))


def tree_of(weights: Any, code: Any = None) -> Tree | None:
    """None where nothing says that these are the weights of a network."""
    if not isinstance(weights, dict | list | tuple):
        return None
    arrays = dict(tree_flatten(weights))
    if len(arrays) < LEAST_ARRAYS or not all(map(_is_weight, arrays.values())) or all(a.ndim < 2 for a in arrays.values()):
        return None
    if sum(a.nbytes for a in arrays.values()) > MOST_BYTES:
        return None
    tree = Tree(weights, code)
    return tree if {e.path for e in parameters(tree)} == arrays.keys() else None


def named(weights: Any) -> dict[str, mx.array]:
    return {name: array for name, array in tree_flatten(weights) if isinstance(array, mx.array)}


def shapes_of(weights: Named) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in weights.items()}


def same(one: Named, other: Named) -> bool:
    """The very arrays."""
    return one.keys() == other.keys() and all(one[name] is array for name, array in other.items())


def code_of(function: Any) -> Any:
    """A function that is made anew at every step is the same one."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__code__", function)


def _is_weight(thing: Any) -> bool:
    return isinstance(thing, mx.array) and mx.issubdtype(thing.dtype, mx.floating)


def _items(weights: Any) -> Iterable[tuple[Any, Any]]:
    return weights.items() if isinstance(weights, dict) else enumerate(weights)


def _opened(thing: Any) -> Any:
    """A module looks into dicts and lists, not into tuples."""
    if isinstance(thing, dict):
        return {key: _opened(value) for key, value in thing.items()}
    return [_opened(value) for value in thing] if isinstance(thing, list | tuple) else thing
