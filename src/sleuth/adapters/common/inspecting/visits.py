"""Visits while they are being made, which every adapter notes in the same way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sleuth.core.contract.inspection import Door, Visit
from sleuth.core.runtime.tree import leaves
from sleuth.core.words import kind_of

# A tuple of a thousand arrays is told by its first ones.
MOST_DOORS = 16


@dataclass
class Open:
    """A visit that has not ended, or has: what becomes a `Visit`."""

    path: str
    parent: int | None
    inputs: tuple[Door, ...]
    outputs: tuple[Door, ...] = ()
    began: float = 0.0
    seconds: float = 0.0
    flops: int = 0
    finished: bool = False

    def visit(self, *, timed: bool = True) -> Visit:
        seconds = self.seconds if timed else None
        return Visit(self.path, self.parent, self.inputs, self.outputs, self.flops, seconds, self.finished)


def doors_of(
    tree: Any, is_array: Callable[[Any], bool], shape: Callable[[Any], tuple[int, ...]], dtype: Callable[[Any], str]
) -> tuple[Door, ...]:
    """The arrays in what went in or came out; what it was where there is none."""
    found = [Door(path, shape(array), dtype(array)) for path, array in leaves(tree, is_array)][:MOST_DOORS]
    if found or tree is None or tree == {}:
        return tuple(found)
    only = next(iter(tree.values())) if isinstance(tree, dict) and len(tree) == 1 else tree
    return (Door("", None, what=kind_of(only)),)


def which_place(paths: Sequence[str], caller: str, calls: Mapping[str, int]) -> str:
    """Of a part that stands at several places: the place that its caller holds, in turn where there are several."""
    near = [p for p in paths if p.rpartition(".")[0] == caller] or [p for p in paths if p.startswith(caller)] or paths
    return min(near, key=lambda p: calls[p])
