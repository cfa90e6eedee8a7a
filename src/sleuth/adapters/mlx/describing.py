"""Describing a module and its optimiser."""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.common.assignment import assignment
from sleuth.adapters.common.machine import machine
from sleuth.adapters.common.schedule import highest
from sleuth.adapters.mlx.arrays import dtype_name
from sleuth.adapters.mlx.kinds import family_of, settings_of
from sleuth.adapters.mlx.model_parts import Entry, is_buffer, modules, parameters
from sleuth.adapters.mlx.source_lines import freezing_line, layer_line
from sleuth.adapters.mlx.state import single
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Layer, Parameter, Settings, Stray
from sleuth.core.subject import Subject

STRAY_DEPTH = 4


def describe(subject: Subject) -> Architecture:
    model: nn.Module = subject.model
    found = modules(model)
    layers = tuple(_layer(model, path, module) for path, module in found if path or len(found) == 1)
    held = None if not isinstance(subject.optimizer, Optimizer) else True
    own = tuple(_parameter(entry, held) for entry in parameters(model) if not is_buffer(entry))
    frozen_at = None if all(p.trainable for p in own) else freezing_line(sys._getframe(1))
    return Architecture(layers, own, tuple(_strays(model)), frozen_at)


def settings(subject: Subject) -> Settings:
    optimiser = subject.optimizer if isinstance(subject.optimizer, Optimizer) else None
    dtypes = [dtype_name(entry.array) for entry in parameters(subject.model)]
    return Settings(
        framework="mlx",
        loss=loss_name(subject),
        optimiser=None if optimiser is None else type(optimiser).__name__,
        lr=rate_of(optimiser),
        optimiser_options=_options(optimiser),
        parameter_dtype=max(set(dtypes), key=dtypes.count) if dtypes else None,
        default_dtype="float32",
        versions={"mlx": mx.__version__},
        machine={**machine(), "device": str(mx.default_device().type).removeprefix("DeviceType.")},
    )


def loss_name(subject: Subject) -> str | None:
    thing: Any = subject.loss or subject.step
    while isinstance(thing, partial):
        thing = thing.func
    return None if thing is None else getattr(thing, "__name__", type(thing).__name__)


def rate_of(optimiser: Any) -> float | None:
    """As the user wrote it: MLX keeps it in float32, whose 0.1 is not Python's."""
    ones = [o for o in single(optimiser) if "learning_rate" in o._state] if isinstance(optimiser, Optimizer) else []
    try:
        return None if not ones else as_written(ones[0]._state["learning_rate"])
    except (ValueError, RuntimeError):  # inside a function that is being compiled nothing has a value
        return None


def schedule_of(optimiser: Any) -> Any:
    """What its rate follows."""
    found = (getattr(one, "_schedulers", {}).get("learning_rate") for one in single(optimiser))
    return next((schedule for schedule in found if schedule is not None), None)


def as_written(rate: Any) -> float:
    return float(str(np.float32(rate.item()))) if isinstance(rate, mx.array) else float(rate)


def _options(optimiser: Any) -> dict[str, Any]:
    """`bias_correction` of Adam among them: MLX leaves it out unless it is asked for, other frameworks always do it."""
    found: dict[str, Any] = {}
    for one in single(optimiser):
        for name, value in vars(one).items():
            plain = tuple(value) if isinstance(value, list) and all(isinstance(v, int | float) for v in value) else value
            if isinstance(plain, int | float | bool | str | tuple) and not name.startswith("_"):
                found.setdefault(name, plain)
        schedule = getattr(one, "_schedulers", {}).get("learning_rate")
        peak = None if schedule is None else highest(lambda step, rate=schedule: rate(mx.array(step)))  # type: ignore[misc]
        if peak is not None:
            found.setdefault("initial_lr", peak)
    return found


def _layer(model: nn.Module, path: str, module: nn.Module) -> Layer:
    return Layer(path, type(module).__name__, family_of(module), settings_of(module), layer_line(model, path))


def _parameter(entry: Entry, optimised: bool | None) -> Parameter:
    """MLX's optimisers hold no parameters: they step whatever gradients they are given, those of all trainable ones."""
    return Parameter(
        path=entry.path,
        shape=tuple(entry.array.shape),
        dtype=dtype_name(entry.array),
        device=str(mx.default_device().type).removeprefix("DeviceType."),
        trainable=entry.trainable,
        optimised=entry.trainable if optimised else optimised,
        layer=entry.layer,
        family=family_of(entry.module),
        location=_values_line(entry),
    )


def _values_line(entry: Entry) -> Location | None:
    """A weight that stands in a class of the user's own has a line there."""
    return assignment(type(entry.module), entry.path.removeprefix(entry.layer).lstrip(".").split(".")[0])


def _strays(model: nn.Module) -> Iterator[Stray]:
    """Modules in tuples or inside plain objects: MLX takes none of their weights. A name that begins with an underscore says that
    this is meant."""
    known = {id(entry.array) for entry in parameters(model)}
    for path, module in modules(model):
        for name, value in (*module.items(), *vars(module).items()):
            if str(name).startswith("_") or type(value) in (dict, list) or isinstance(value, nn.Module):
                continue
            unseen = {id(m): m for m in _held(value, STRAY_DEPTH)}.values()
            arrays = {id(e.array): e.array for m in unseen for e in parameters(m) if e.trainable}
            count = sum(array.size for key, array in arrays.items() if key not in known)
            if count:
                at = f"{path}.{name}" if path else str(name)
                yield Stray(at, _holder(value), count, assignment(type(module), str(name)))


def _held(thing: Any, depth: int) -> Iterator[nn.Module]:
    if isinstance(thing, nn.Module):
        yield thing
    elif depth > 0 and not isinstance(thing, str | bytes | int | float | type | mx.array | Optimizer):
        inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple | set) else ()
        for child in (*list(inner)[:256], *getattr(thing, "__dict__", {}).values()):
            yield from _held(child, depth - 1)


def _holder(value: Any) -> str:
    return next((kind.__name__ for kind in (list, dict, tuple, set) if type(value) is kind), "object")
