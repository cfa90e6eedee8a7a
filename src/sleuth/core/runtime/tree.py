"""Walking batches and outputs: tuples, lists, mappings and dataclasses of arrays."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

IsArray = Callable[[Any], bool]


def leaves(tree: Any, is_array: IsArray, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, array) for every array in the tree; other leaves are passed over."""
    if is_array(tree):
        yield path, tree
        return
    for key, child in _children(tree):
        yield from leaves(child, is_array, f"{path}.{key}" if path else str(key))


def map_arrays(tree: Any, change: Callable[[Any], Any], is_array: IsArray) -> Any:
    """The same tree with every array changed; everything else is kept as it is."""
    if is_array(tree):
        return change(tree)
    match tree:
        case Mapping():
            return _like_mapping(tree, {k: map_arrays(v, change, is_array) for k, v in tree.items()})
        case tuple() if hasattr(tree, "_fields"):
            return type(tree)(*(map_arrays(v, change, is_array) for v in tree))
        case tuple():
            return tuple(map_arrays(v, change, is_array) for v in tree)
        case list():
            return [map_arrays(v, change, is_array) for v in tree]
        case _ if is_dataclass(tree) and not isinstance(tree, type):
            return replace(tree, **{f.name: map_arrays(getattr(tree, f.name), change, is_array) for f in fields(tree) if f.init})
        case _:
            return tree


def _children(tree: Any) -> Iterator[tuple[Any, Any]]:
    match tree:
        case Mapping():
            yield from tree.items()
        case tuple() if hasattr(tree, "_fields"):
            yield from zip(tree._fields, tree, strict=True)
        case tuple() | list():
            yield from enumerate(tree)
        case _ if is_dataclass(tree) and not isinstance(tree, type):
            yield from ((f.name, getattr(tree, f.name)) for f in fields(tree))


def _like_mapping(tree: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Mapping types with their own constructor (such as a tokenizer's) are kept where they allow it."""
    try:
        return type(tree)(values)  # type: ignore[call-arg]
    except Exception:  # their constructor wants something else: the model still gets its keys
        return values


def taken(array: Any, rows: np.ndarray) -> Any:
    """These rows of an array of any framework. Some take positions of NumPy's, others only a list of numbers."""
    try:
        return array[rows]
    except (TypeError, ValueError):
        return array[rows.tolist()] if len(rows) else array[:0]
