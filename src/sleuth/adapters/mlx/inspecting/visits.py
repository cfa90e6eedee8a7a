"""Follows the calls of a model's parts through one forward pass."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.anatomy import every_module
from sleuth.adapters.mlx.arrays import arrays_in, dtype_name, is_array
from sleuth.adapters.mlx.hearing import replaced
from sleuth.adapters.mlx.inspecting.counting import flops_of
from sleuth.core.inspection import Door, Visit
from sleuth.core.tree import leaves
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


@dataclass
class Visitor:
    """`timed`: each part's output is computed before it is handed on, and the clock is read then."""

    model: nn.Module
    timed: bool = False
    noted: list[Open] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    on_output: Callable[[int, nn.Module, Any], Any] | None = None  # number of the visit; what it returns is handed on
    on_begin: Callable[[], None] = lambda: None  # the model itself is called
    _calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self._paths: dict[int, list[str]] = defaultdict(list)
        for path, module in every_module(self.model):
            self._paths[id(module)].append(path)

    def visits(self) -> tuple[Visit, ...]:
        seconds = (o.seconds if self.timed else None for o in self.noted)
        return tuple(
            Visit(o.path, o.parent, o.inputs, o.outputs, o.flops, s, o.finished) for o, s in zip(self.noted, seconds, strict=True)
        )

    @contextmanager
    def following(self) -> Iterator[None]:
        undo = [replaced(kind, "__call__", self._call(kind.__call__)) for kind in {type(m) for _, m in every_module(self.model)}]
        try:
            yield
        finally:
            while undo:
                undo.pop()()

    def _call(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        inside: set[int] = set()  # a class whose __call__ calls that of the class above it is one part

        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if id(module) not in self._paths or id(module) in inside:
                return plain(module, *args, **kwargs)
            inside.add(id(module))
            number = self._enter(module, args, kwargs)
            try:
                output = plain(module, *args, **kwargs)
                if self.timed:
                    mx.eval(arrays_in(output))
                return self._leave(number, module, args, output)
            finally:
                inside.discard(id(module))
                self.stack.pop()

        return call

    def _enter(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        parent = self.stack[-1] if self.stack else None
        path = self._which(self._paths[id(module)], parent)
        if parent is None and not path:
            self.on_begin()
        self._calls[path] += 1
        self.stack.append(len(self.noted))
        self.noted.append(Open(path, parent, doors({**dict(enumerate(args)), **kwargs}), began=time.perf_counter()))
        return len(self.noted) - 1

    def _leave(self, number: int, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        note = self.noted[number]
        note.seconds = time.perf_counter() - note.began
        note.finished, note.outputs = True, doors(output)
        inner = [i for i, other in enumerate(self.noted) if other.parent == number]
        # An attention is counted as a whole, with the layers in it.
        whole = flops_of(module, args, output)
        note.flops = max(whole, sum(self.noted[i].flops for i in inner))
        return output if self.on_output is None else self.on_output(number, module, output)

    def _which(self, paths: list[str], parent: int | None) -> str:
        """Of a module that stands at several places: the place that its caller holds, in turn where there are several."""
        prefix = self.noted[parent].path if parent is not None else ""
        near = [p for p in paths if p.rpartition(".")[0] == prefix] or [p for p in paths if p.startswith(prefix)] or paths
        return min(near, key=lambda p: self._calls[p])


def doors(tree: Any) -> tuple[Door, ...]:
    found = [Door(path, tuple(a.shape), dtype_name(a)) for path, a in leaves(tree, is_array)][:MOST_DOORS]
    if found or tree is None or tree == {}:
        return tuple(found)
    only = next(iter(tree.values())) if isinstance(tree, dict) and len(tree) == 1 else tree
    return (Door("", None, what=kind_of(only)),)
