"""Follows the calls of a model's parts through one forward pass, and counts their operations."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.common.flops import layer_flops
from sleuth.adapters.common.inspecting.visits import Open, doors_of, which_place
from sleuth.adapters.listening.patches import put_back
from sleuth.adapters.mlx.arrays import arrays_in, dtype_name, is_array
from sleuth.adapters.mlx.kinds import TRANSPOSED, family_of
from sleuth.adapters.mlx.model_parts import every_module, parameters
from sleuth.adapters.mlx.pass_listener import replaced
from sleuth.core.contract.inspection import Door, Visit


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
        return tuple(note.visit(timed=self.timed) for note in self.noted)

    @contextmanager
    def following(self) -> Iterator[None]:
        undo = [replaced(kind, "__call__", self._call(kind.__call__)) for kind in {type(m) for _, m in every_module(self.model)}]
        try:
            yield
        finally:
            put_back(*reversed(undo))

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
        return which_place(paths, self.noted[parent].path if parent is not None else "", self._calls)


def doors(tree: Any) -> tuple[Door, ...]:
    return doors_of(tree, is_array, lambda a: tuple(a.shape), dtype_name)


def flops_of(module: nn.Module, args: tuple[Any, ...], output: Any) -> int:
    """Floating-point operations of one call of a layer: MLX counts none."""
    family, made = family_of(module), next(iter(arrays_in(output)), None)
    if made is None or not made.ndim:
        return 0
    weights = [tuple(e.array.shape) for e in parameters(module)]
    places = tuple(made.shape)
    if isinstance(module, TRANSPOSED) and args and isinstance(args[0], mx.array):
        # Each place of the input is multiplied with the whole kernel.
        return 2 * prod(args[0].shape[:-1]) * prod(module.weight.shape)
    if family == "attention":
        return layer_flops(family, weights, places, places[-1], _scores(module, args, made))
    return layer_flops(family, weights, places, places[-1])


def _scores(module: nn.Module, args: tuple[Any, ...], made: mx.array) -> int:
    """Queries times keys, over all heads: samples × queries × keys × width."""
    keys = args[1] if len(args) > 1 and isinstance(args[1], mx.array) else args[0]
    width = module.query_proj.weight.shape[0] if "query_proj" in module else made.shape[-1]
    return int(prod(made.shape[:-1]) * keys.shape[-2] * width)
