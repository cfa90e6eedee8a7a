"""The tree of a model, with what each part owns."""

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from sleuth.adapters.mlx.kinds import family_of, settings_of
from sleuth.adapters.mlx.model_parts import every_module, is_buffer, parameters
from sleuth.core.contract.inspection import Part


def parts(model: nn.Module) -> tuple[Part, ...]:
    return tuple(_parts(model))


def _parts(model: nn.Module) -> Iterator[Part]:
    listed: dict[int, str] = {}
    arrays: dict[int, str] = {}
    for path, module in every_module(model):
        own = _own(module)
        shapes = {name: tuple(array.shape) for name, (array, _) in own.items()}
        common: dict[str, Any] = {"path": path, "kind": type(module).__name__, "family": family_of(module)}
        common |= {"settings": settings_of(module), "parameters": shapes}
        if id(module) in listed:
            yield Part(**common, same_as=listed[id(module)])
            continue
        listed[id(module)] = path
        tied = {name: arrays[id(array)] for name, (array, _) in own.items() if id(array) in arrays}
        new = {id(array): (array, trained) for name, (array, trained) in own.items() if name not in tied}
        arrays |= {id(array): f"{path}.{name}" if path else name for name, (array, _) in own.items() if name not in tied}
        count = sum(array.size for array, _ in new.values())
        yield Part(**common, count=count, trainable=sum(a.size for a, trained in new.values() if trained), tied=tied)


def _own(module: nn.Module) -> dict[str, tuple[mx.array, bool]]:
    """Its own parameters, not those of the modules inside it; running statistics are none."""
    return {e.path: (e.array, e.trainable) for e in parameters(module) if e.module is module and not is_buffer(e)}
