"""Who keeps things in memory: which of the user's variables, and the line that adds to it."""

import ast
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth.adapters.torch.watching.graph_reach import reach
from sleuth.adapters.torch.watching.user_variables import CONTAINERS, Variable, adding_line, exchanges, rebound, variables
from sleuth.core.location import Location, locate
from sleuth.core.observation import Holder

SEARCH_SECONDS = 0.01
# Of a long container so many entries are looked at, at its beginning: the oldest.
LOOKED_AT = 16
# A container this long may be what grows.
LONG = 32


def holder_of_graphs(frame: FrameType | None, old: int) -> Holder | None:
    """The variable behind which lies a graph as old as node number `old`. Of several the one with most tensors, then the first:
    the innermost."""
    found: list[tuple[int, Variable, torch.Tensor]] = []
    for variable in variables(frame, SEARCH_SECONDS):
        tensors = [t for t in _tensors(variable.value) if t.grad_fn is not None]
        # A container is guilty by its first entries, a single tensor by what lies behind it.
        if tensors and any(reach(t, old, most_nodes=512) <= old for t in tensors[:2]):
            count = len(variable.value) if isinstance(variable.value, CONTAINERS) else 1
            found.append((count, variable, tensors[0]))
    if not found:
        return None
    count, variable, tensor = max(found, key=lambda f: f[0])
    return Holder(variable.name, _what(tensor, count), count, 0, _is_bounded(variable.value), adding_line(variable))


@dataclass(frozen=True)
class Entry:
    count: int
    bytes: int


def inventory(frame: FrameType | None) -> dict[str, Entry]:
    """The long containers among the user's variables, by name."""
    found = {}
    for variable in variables(frame, SEARCH_SECONDS):
        if isinstance(variable.value, CONTAINERS) and len(variable.value) >= LONG:
            found[variable.name] = Entry(len(variable.value), bytes_of(variable.value))
    return found


def grown_since(frame: FrameType | None, before: Mapping[str, Entry]) -> tuple[Holder, ...]:
    """What has become longer since an inventory was taken, the largest first."""
    found = []
    for variable in variables(frame, SEARCH_SECONDS):
        if not isinstance(variable.value, CONTAINERS) or len(variable.value) < LONG:
            continue
        now, then = Entry(len(variable.value), bytes_of(variable.value)), before.get(variable.name, Entry(0, 0))
        if now.count > then.count and now.bytes > then.bytes:
            what = _what(next(iter(_entries(variable.value)), None), now.count)
            found.append((now.bytes - then.bytes, variable, what, now.count))
    largest = sorted(found, key=lambda f: -f[0])[:3]
    return tuple(Holder(v.name, what, count, size, _is_bounded(v.value), adding_line(v)) for size, v, what, count in largest)


def carried(model: nn.Module) -> str | None:
    """A tensor with a graph that a layer keeps as an attribute of its own: its name as seen from the model."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if not name.startswith("_") and with_graph(value):
                return ".".join(word for word in ("model", path, name) if word)
    return None


def passed_on(frame: FrameType | None, call: Location | None) -> tuple[str | None, Location | None]:
    """What a statement both gives to a call and gets back: in `out, h = model(x, h)` that is `h`, with its line. Only the
    statement at `call` where that is known; there also what it only gives, if that has a graph."""
    named = {v.name: v for v in variables(frame, SEARCH_SECONDS) if with_graph(v.value)}
    files = [call.file] if call else list(dict.fromkeys(v.file for v in named.values()))
    for file, (statement, given, got) in ((f, s) for f in files for s in exchanges(f)):
        if call is not None and not statement.lineno <= call.line <= (statement.end_lineno or statement.lineno):
            continue
        name = next((name for name in got if name in given and (call is not None or name in named)), None)
        if name is not None:
            return name, locate(file, statement.lineno)
        if call is not None and (name := next((name for name in given if name in named), None)) is not None:
            return name, _handed_on(file, statement, name) or locate(file, statement.lineno)
    return None, None


def _handed_on(file: str, call: ast.stmt, name: str) -> Location | None:
    """In the loop around a call that is given `name`: the last line below it that gives `name` its next value."""
    lines = [line for line in rebound(file, name, call) if line > call.lineno]
    return locate(file, lines[-1]) if lines else None


def with_graph(value: Any) -> bool:
    return any(t.grad_fn is not None for t in _tensors(value))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """A tensor itself, or those among the first entries of a container, one level deeper included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, CONTAINERS):
        for entry in _entries(value):
            inner = _entries(entry) if isinstance(entry, CONTAINERS) else (entry,)
            yield from (t for t in inner if isinstance(t, torch.Tensor))


def _entries(container: Any) -> Iterator[Any]:
    try:
        yield from list(islice(container.values() if isinstance(container, dict) else container, LOOKED_AT))
    except RuntimeError:  # somebody changes it meanwhile
        return


def bytes_of(container: Any) -> int:
    """From a sample of its entries. What several entries share is counted once."""
    entries = list(_entries(container))
    if not entries:
        return 0
    shared: dict[int, int] = {}
    total = 0
    for part in chain.from_iterable(e if isinstance(e, list | tuple) else (e,) for e in entries):
        if isinstance(part, torch.Tensor):
            storage = part.untyped_storage()
            shared[storage.data_ptr()] = storage.nbytes()
        elif isinstance(part, np.ndarray):
            base = part if part.base is None else part.base
            shared[id(base)] = getattr(base, "nbytes", part.nbytes)
        else:
            total += sys.getsizeof(part)
    return int((total + sum(shared.values())) * len(container) / len(entries))


def _what(thing: Any, count: int) -> str:
    if isinstance(thing, torch.Tensor | np.ndarray):
        word = "tensor" if isinstance(thing, torch.Tensor) else "array"
        shape = f"of shape {tuple(thing.shape)}" if thing.ndim else "of one number"
        return f"a {word} {shape}" if count == 1 else f"{count:,} {word}s {shape}"
    return f"{count:,} entries" if count > 1 else f"a {type(thing).__name__}"


def _is_bounded(value: Any) -> bool:
    return isinstance(value, deque) and value.maxlen is not None
