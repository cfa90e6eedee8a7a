"""Observations as JSON and back. Only the classes of the core are known: a run from a stranger can build nothing else."""

import base64
import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np

from sleuth.core import finding, location, observation, stage, statistics, trial
from sleuth.core.reading import flow

MODULES: tuple[ModuleType, ...] = (observation, trial, statistics, location, flow, finding, stage)


def encode(thing: Any) -> str:
    return json.dumps(_plain(thing), separators=(",", ":"))


def decode(text: str | bytes) -> Any:
    return _thing(json.loads(text))


def known_class(name: str) -> type | None:
    return _classes().get(name)


@functools.cache
def _classes() -> dict[str, type]:
    found = [value for module in MODULES for value in vars(module).values() if isinstance(value, type)]
    return {cls.__name__: cls for cls in found if dataclasses.is_dataclass(cls) or issubclass(cls, Enum)}


def _plain(thing: Any) -> Any:
    """What JSON has no word for is an object with one key that begins with a dot."""
    match thing:
        case None | bool() | int() | str():
            return thing
        case float():
            return thing if math.isfinite(thing) else {".float": str(thing)}
        case Enum():
            return {".enum": [type(thing).__name__, thing.name]}
        case np.ndarray():
            return {".array": [thing.dtype.str, thing.shape, base64.b64encode(np.ascontiguousarray(thing).tobytes()).decode()]}
        case np.generic():
            return _plain(thing.item())
        case type():
            return {".class": thing.__name__}
        case tuple() | list() | frozenset():
            items = [_plain(item) for item in thing]
            return items if isinstance(thing, tuple) else {".list": items} if isinstance(thing, list) else {".set": items}
        case Mapping():
            return {".map": [[_plain(key), _plain(value)] for key, value in thing.items()]}
        case _ if dataclasses.is_dataclass(thing):
            fields = {f.name: _plain(getattr(thing, f.name)) for f in dataclasses.fields(thing) if f.init}
            return {".is": type(thing).__name__, **fields}
    return {".text": str(thing)}


def _thing(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_thing(item) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if ".is" in plain:
        cls = _classes()[plain[".is"]]
        known = {f.name for f in dataclasses.fields(cls)}
        return cls(**{name: _thing(value) for name, value in plain.items() if name in known})
    ((word, value),) = plain.items()
    match word:
        case ".float":
            return float(value)
        case ".enum":
            return _classes()[value[0]][value[1]]  # type: ignore[index]
        case ".array":
            return np.frombuffer(base64.b64decode(value[2]), dtype=np.dtype(value[0])).reshape(value[1])
        case ".class":
            return _classes()[value]
        case ".list":
            return [_thing(item) for item in value]
        case ".set":
            return frozenset(_thing(item) for item in value)
        case ".map":
            return {_thing(key): _thing(item) for key, item in value}
        case ".text":
            return value
    raise ValueError(f"unknown word in a stored observation: {word}")
