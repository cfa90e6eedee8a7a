"""What a module is made of: submodules and parameters in the order of definition, each under its first path."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn


def modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """(path, module), the model itself first, each once. `model.named_modules()` has them in another order."""
    return list({id(m): (path, m) for path, m in reversed(list(every_module(model)))}.values())[::-1]


def aliases(model: nn.Module) -> dict[int, list[str]]:
    """id of a module → every path under which it stands."""
    found: dict[int, list[str]] = {}
    for path, module in every_module(model):
        found.setdefault(id(module), []).append(path)
    return found


def every_module(thing: Any, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """One that stands at two places comes twice. As MLX sees it: lists and dicts are looked into, tuples are not."""
    if isinstance(thing, nn.Module):
        yield path, thing
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in items:
        if isinstance(value, dict | list):
            yield from every_module(value, f"{path}.{key}" if path else str(key))


@dataclass(frozen=True)
class Entry:
    """A parameter: an array that stands in a module under a name that MLX takes for one."""

    path: str
    array: mx.array
    layer: str
    module: nn.Module
    trainable: bool


def parameters(model: nn.Module) -> list[Entry]:
    """With frozen ones and running statistics; of a module that stands in two places only the first."""
    known = dict(modules(model))
    hidden = {path for path in known if any(part.startswith("_") for part in path.split("."))}
    return [entry for path, module in known.items() if path not in hidden for entry in _entries(path, module)]


def _entries(path: str, module: nn.Module) -> Iterator[Entry]:
    for key, array in _own_arrays(module):
        name = key.split(".")[0]
        trainable = not {key, name} & module._no_grad
        yield Entry(f"{path}.{key}" if path else key, array, path, module, trainable)


def _own_arrays(thing: Any, path: str = "") -> Iterator[tuple[str, mx.array]]:
    """Arrays in the module itself, in its lists and dicts too; other modules are not entered."""
    items = thing.items() if isinstance(thing, dict) else enumerate(thing)
    for key, value in items:
        if isinstance(key, str) and key.startswith("_") and not path:
            continue
        at = f"{path}.{key}" if path else str(key)
        if isinstance(value, mx.array):
            yield at, value
        elif isinstance(value, dict | list) and not isinstance(value, nn.Module):
            yield from _own_arrays(value, at)


def is_buffer(entry: Entry) -> bool:
    """Running statistics are parameters to MLX, frozen ones; to everybody else they are not."""
    return isinstance(entry.module, nn.BatchNorm) and entry.path.endswith(("running_mean", "running_var"))


def last_paths(model: nn.Module) -> dict[str, str]:
    """First path of a parameter → the path under which its gradient comes: of a shared module that is the last."""
    places = aliases(model)
    found = {}
    for entry in parameters(model):
        last, own = places[id(entry.module)][-1], entry.path.removeprefix(entry.layer).lstrip(".")
        found[entry.path] = f"{last}.{own}" if last else own
    return found
