"""Who is called in one forward pass, in order: `Layer.__call__` is listened to."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from sleuth.adapters.common.flops import layer_flops
from sleuth.adapters.common.inspecting.visits import Open, doors_of
from sleuth.adapters.keras import backend
from sleuth.adapters.keras.families import family_of
from sleuth.adapters.keras.model_parts import inner, layers
from sleuth.adapters.keras.pass_listener import CLOSED
from sleuth.adapters.keras.patches import replaced
from sleuth.core.contract.inspection import Door, Visit
from sleuth.core.runtime.tree import leaves


@dataclass
class Visitor:
    model: Any
    noted: list[Open] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)
    _paths: dict[int, str] = field(default_factory=dict)

    def visits(self, *, timed: bool = False) -> tuple[Visit, ...]:
        return tuple(note.visit(timed=timed) for note in self.noted)

    @contextmanager
    def following(self) -> Iterator[None]:
        self._paths = {id(self.model): "", **{id(layer): path for path, layer in layers(self.model)}}
        with replaced(keras.layers.Layer, "__call__", self._calling):
            yield

    def _calling(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if id(layer) not in self._paths:  # made by this very call
                self._paths |= {id(one): path for path, one in layers(self.model) if id(one) not in self._paths}
            if id(layer) not in self._paths or in_symbolic_scope():
                return plain(layer, *args, **kwargs)
            return self._visit(plain, layer, args, kwargs)

        return call

    def _visit(self, plain: Callable[..., Any], layer: Any, args: Any, kwargs: Any) -> Any:
        note = Open(self._paths[id(layer)], self.stack[-1] if self.stack else None, doors({**dict(enumerate(args)), **kwargs}))
        self.stack.append(len(self.noted))
        self.noted.append(note)
        began = time.perf_counter()
        try:
            output = plain(layer, *args, **kwargs)
            note.finished = True
        finally:
            note.seconds = time.perf_counter() - began
            self.stack.pop()
        note.outputs = doors(output)
        note.flops += own_flops(layer, args, kwargs, output)
        if note.parent is not None:
            self.noted[note.parent].flops += note.flops
        return output


def own_flops(layer: Any, args: Any, kwargs: Any, output: Any) -> int:
    """Of a layer without parts. Recurrent layers and attention have parts, which are called beside `Layer.__call__`."""
    made = next((a for _, a in leaves(output, backend.is_tensor)), None)
    family = family_of(layer)
    if made is None or (inner(layer) and family not in CLOSED) or family == "attention":
        return 0
    shape = tuple(int(n) for n in made.shape)
    weights = [tuple(int(n) for n in w.shape) for w in layer.weights]
    if family == "recurrent":
        given = next((a for _, a in leaves((args, kwargs), backend.is_array)), None)
        steps = int(given.shape[1]) if given is not None and len(given.shape) > 2 else 1
        return layer_flops(family, weights, (shape[0], steps, 1), 1)
    first = family == "conv" and getattr(layer, "data_format", "") == "channels_first"
    units = shape[1] if first else shape[-1] if shape else 0
    if "Depthwise" in type(layer).__name__:
        return layer_flops(family, [(int(k[0]), int(k[1])) for k in weights if len(k) > 2], shape, 1)
    return layer_flops(family, weights, shape, units)


def doors(tree: Any) -> tuple[Door, ...]:
    return doors_of(tree, backend.is_array, lambda a: tuple(int(n) for n in a.shape), backend.dtype)
