"""How much memory the process holds, and which of the user's variables keep arrays: as values that become more, or uncomputed,
with all that they are made of."""

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import Optimizer

from sleuth.adapters.common.process_memory import ProcessMemory
from sleuth.adapters.common.user_variables import CONTAINERS, Variable, adding_line, variables
from sleuth.adapters.mlx.arrays import drawn, has_values
from sleuth.adapters.mlx.watching.recorder import NotingRecorder
from sleuth.core.observation import Holder

SEARCH_SECONDS = 0.01
# Of a long container so many entries are looked at, at its beginning: the oldest.
LOOKED_AT = 16
# A container this long may be what grows.
LONG = 32


@dataclass(frozen=True)
class Entry:
    count: int
    bytes: int


class MemoryRecorder(NotingRecorder):
    """Passes over the data are not known: MLX has no loader of its own that could be listened to."""

    def __init__(self) -> None:
        super().__init__()
        self._memory = ProcessMemory(inventory, grown_since)
        self._taken = 0  # steps

    def after_step(self, number: int) -> None:
        found = self._memory.after_step(self._taken)
        self._taken += 1
        if found is not None:
            self.notes.append(found)


def inventory(frame: FrameType | None) -> dict[str, Entry]:
    """The long containers among the user's variables, by name."""
    return {v.name: Entry(len(v.value), _bytes(v.value)) for v in _long(frame)}


def grown_since(frame: FrameType | None, before: Mapping[str, Entry]) -> tuple[Holder, ...]:
    """What has become longer since an inventory was taken, the largest first."""
    found = []
    for variable in _long(frame):
        count, size = len(variable.value), _bytes(variable.value)
        then = before.get(variable.name, Entry(0, 0))
        if count > then.count and size > then.bytes:
            found.append((size - then.bytes, variable, count))
    return tuple(_holder(v, count, size) for size, v, count in sorted(found, key=lambda f: -f[0])[:3])


def operations_behind(frame: FrameType | None) -> dict[str, tuple[int, Variable]]:
    """Variables that are uncomputed → how many operations they wait for: of a container, its entries that wait."""
    found = {}
    for variable in variables(frame, SEARCH_SECONDS, _parts):
        if isinstance(variable.value, mx.array):
            waiting = drawn(variable.value).count("shape=rectangle")
        elif isinstance(variable.value, list | deque) and len(variable.value) >= LONG:
            waiting = len(variable.value) if _waits(variable.value) else 0
        else:
            continue
        if waiting:
            found[variable.name] = (waiting, variable)
    return found


def holder_of(variable: Variable) -> Holder:
    return _holder(variable, len(variable.value) if isinstance(variable.value, CONTAINERS) else 1, 0)


def _waits(container: Any) -> bool:
    arrays = [a for a in _entries(container) if isinstance(a, mx.array)]
    return bool(arrays) and all(not has_values(a) for a in arrays[:2])


def _long(frame: FrameType | None) -> Iterator[Variable]:
    return (v for v in variables(frame, SEARCH_SECONDS, _parts) if type(v.value) in CONTAINERS and len(v.value) >= LONG)


def _holder(variable: Variable, count: int, size: int) -> Holder:
    value = variable.value
    first = next(_entries(value), None) if isinstance(value, CONTAINERS) else value
    bounded = isinstance(value, deque) and value.maxlen is not None
    return Holder(variable.name, _what(first, count), count, size, bounded, adding_line(variable))


def _what(thing: Any, count: int) -> str:
    if isinstance(thing, mx.array | np.ndarray):
        shape = f"of shape {tuple(thing.shape)}" if thing.ndim else "of one number"
        word = "tensor" if isinstance(thing, mx.array) else "array"
        return f"a {word} {shape}" if count == 1 else f"{count:,} {word}s {shape}"
    return f"{count:,} entries" if count > 1 else f"a {type(thing).__name__}"


def _entries(container: Any) -> Iterator[Any]:
    try:
        yield from list(islice(container.values() if isinstance(container, dict) else container, LOOKED_AT))
    except RuntimeError:  # somebody changes it meanwhile
        return


def _bytes(container: Any) -> int:
    """From a sample of its entries."""
    entries = list(_entries(container))
    sizes = [sum(_size(part) for part in (entry if isinstance(entry, list | tuple) else (entry,))) for entry in entries]
    return int(sum(sizes) * len(container) / len(entries)) if entries else 0


def _size(thing: Any) -> int:
    return thing.nbytes if isinstance(thing, mx.array | np.ndarray) else sys.getsizeof(thing)


def _parts(value: Any) -> Iterator[tuple[str, Any]] | None:
    if isinstance(value, mx.array | Optimizer):
        return iter(())
    if isinstance(value, nn.Module):  # its items are its weights and layers
        return ((f".{name}", inner) for name, inner in list(vars(value).items()) if not name.startswith("_"))
    return None
