"""No memory left: how much was asked for, what held the rest."""

import errno
import gc
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.failures.source import functions
from sleuth.adapters.torch.place import TORCH
from sleuth.adapters.torch.watching.memory_holders import bytes_of
from sleuth.adapters.torch.watching.user_variables import CONTAINERS, adding_line, variables
from sleuth.core.observation import Held, OutOfMemory
from sleuth.core.runtime.place import innermost

SAID = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)|out of memory|Cannot allocate memory|"
    r"CUDNN_STATUS_ALLOC_FAILED|CUBLAS_STATUS_ALLOC_FAILED"
)
ASKED = re.compile(r"[Tt]ried to allocate ([\d.]+) ?(bytes|[KMGTP]i?B)|Unable to allocate ([\d.]+) ([KMGTP]i?B)")
CAPACITY = re.compile(r"total capacity of ([\d.]+) ([KMGTP]i?B) of which ([\d.]+) ([KMGTP]i?B) is free")
DEVICE = re.compile(r"GPU (\d+)")
UNITS = {"b": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
SEARCH_SECONDS = 0.5
SHOWN = 4
# Smaller ones are nobody's reason.
LEAST = 1 << 16


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and SAID.search(str(error)) is not None


def read_out_of_memory(
    error: BaseException,
    model: nn.Module | None,
    optimisers: Iterable[Optimizer],
    step: int,
    phase: str | None,
    layer: str | None,
) -> OutOfMemory:
    text = str(error)
    asked, capacity, gpu = ASKED.search(text), CAPACITY.search(text), DEVICE.search(text)
    on_device = gpu is not None or "CUDA" in text or "MPS" in text
    total, free = _of_machine() if not on_device else (None, None)
    if capacity is not None:
        total, free = _bytes(capacity[1], capacity[2]), _bytes(capacity[3], capacity[4])
    parts = list(_parts(model, optimisers))
    counted = {_storage(t) for _, tensors in parts for t in tensors}
    return OutOfMemory(
        step,
        device=f"cuda:{gpu[1]}" if gpu else "a device" if on_device else "cpu",
        asked=None if asked is None else _bytes(asked[1] or asked[3], asked[2] or asked[4]),
        free=free,
        total=total,
        held=tuple(Held(what, _sum(tensors), len(tensors)) for what, tensors in parts if tensors),
        largest=tuple(_largest(error.__traceback__, counted)),
        batch=_rows(error.__traceback__),
        phase=phase,
        layer=layer,
        location=innermost(error.__traceback__, (TORCH,)),
    )


def _parts(model: nn.Module | None, optimisers: Iterable[Optimizer]) -> Iterator[tuple[str, list[torch.Tensor]]]:
    optimisers = list(optimisers)
    if model is not None:
        parameters = [*model.parameters(), *model.buffers()]
        own = set(map(id, parameters))
        optimisers = [o for o in optimisers if any(id(p) in own for group in o.param_groups for p in group["params"])]
    else:
        parameters = [p for o in optimisers for group in o.param_groups for p in group["params"]]
    yield "parameters", parameters
    yield "gradients", [p.grad for p in parameters if p.grad is not None]
    states = [s for optimiser in optimisers for s in optimiser.state.values() if isinstance(s, dict)]
    yield "optimiser state", [t for s in states for t in s.values() if isinstance(t, torch.Tensor)]


def _largest(trace: TracebackType | None, counted: set[int]) -> Iterator[Held]:
    """The user's variables first, then what Python holds without a name of the user's."""
    found: list[Held] = []
    frame = next((f.frame for f in functions(trace)), None)
    named = set[int]()
    for variable in variables(frame, SEARCH_SECONDS):
        value = variable.value
        if isinstance(value, torch.Tensor) and _storage(value) not in counted | named:
            named.add(_storage(value))
            found.append(Held(variable.name, _size(value), 1, tuple(value.shape)))
        elif isinstance(value, CONTAINERS) and (inner := _first(value)) is not None:
            named |= {_storage(t) for t in _flat(value)}
            found.append(Held(variable.name, bytes_of(value), len(value), tuple(inner.shape), adding_line(variable)))
    for tensor in _alive(SEARCH_SECONDS):
        if _storage(tensor) not in counted | named:
            named.add(_storage(tensor))
            found.append(Held("", _size(tensor), 1, tuple(tensor.shape)))
    yield from sorted((h for h in found if h.bytes >= LEAST), key=lambda h: -h.bytes)[:SHOWN]


def _alive(seconds: float) -> Iterator[torch.Tensor]:
    ends = time.monotonic() + seconds
    for thing in gc.get_objects():
        # `isinstance` would ask proxies for their class, which may be code of the user's.
        if issubclass(type(thing), torch.Tensor):
            if time.monotonic() > ends:
                return
            yield thing


def optimisers_alive() -> list[Optimizer]:
    return [thing for thing in gc.get_objects() if issubclass(type(thing), Optimizer)]


def _rows(trace: TracebackType | None) -> int | None:
    """Samples in the batch that the outermost running module was given."""
    while trace is not None:
        frame: FrameType = trace.tb_frame
        if isinstance(frame.f_locals.get("self"), nn.Module) and frame.f_code.co_name in ("forward", "_call_impl"):
            given = [*frame.f_locals.values(), *frame.f_locals.get("args", ())]
            first = next((t for t in given if isinstance(t, torch.Tensor) and t.dim()), None)
            if first is not None:
                return int(first.shape[0])
        trace = trace.tb_next
    return None


def _flat(container: Any) -> list[torch.Tensor]:
    try:
        values = list(container.values() if isinstance(container, dict) else container)
    except RuntimeError:  # somebody changes it meanwhile
        return []
    return [t for t in values if isinstance(t, torch.Tensor)]


def _first(container: Any) -> torch.Tensor | None:
    return next(iter(_flat(container)), None)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr()) or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse and meta tensors have none
        return id(tensor)


def _size(tensor: torch.Tensor) -> int:
    try:
        return 0 if tensor.is_meta else int(tensor.untyped_storage().nbytes())
    except (RuntimeError, NotImplementedError):
        return int(tensor.numel() * tensor.element_size())


def _sum(tensors: list[torch.Tensor]) -> int:
    return sum({_storage(t): _size(t) for t in tensors}.values())


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * UNITS[unit[0]])


def _of_machine() -> tuple[int | None, int | None]:
    """All that the process may take, and what was free of it; None where it cannot be read."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(lines[key].split()[0]) << 10 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None, None
    for file in LIMITS:
        try:
            total = min(total, int(Path(file).read_text()))
        except (OSError, ValueError):  # no limit, or another system
            continue
    return total, min(free, total)
