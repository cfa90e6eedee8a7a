"""Statistics of many tensors in one call, without copying them and with one device synchronisation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sleuth import kernel
from sleuth.adapters.torch.arrays import is_meta, to_numpy

# What the C code reads where it lies. A subclass may mean something else by its memory.
LENT = (torch.Tensor, torch.nn.Parameter)
KINDS = {getattr(torch, name): number for name, number in kernel.KINDS.items()} | {torch.bool: kernel.KINDS["uint8"]}


def measure(arrays: Sequence[Any]) -> np.ndarray:
    """One row of statistics an array, see core.statistics."""
    table = np.zeros((len(arrays), len(kernel.COLUMNS)))
    lent = [i for i, a in enumerate(arrays) if is_lent(a)] if kernel.fused is not None else []
    far = [i for i, a in enumerate(arrays) if isinstance(a, torch.Tensor) and not a.is_cpu and not a.is_meta]
    others = sorted(set(range(len(arrays))) - set(lent) - set(far))
    if lent:
        table[lent] = _measure_lent([arrays[i] for i in lent])
    if far:
        table[far] = measure_on_device([arrays[i] for i in far])
    if others:
        table[others] = kernel.measure([np.zeros(0) if is_meta(arrays[i]) else to_numpy(arrays[i]) for i in others])
    return table


def measure_quickly(tensors: list[torch.Tensor]) -> np.ndarray:
    """The same without a look at each tensor first: nearly always all of them lie in host memory."""
    if kernel.fused is not None:
        table = np.empty((len(tensors), len(kernel.COLUMNS)))
        try:
            kernel.fused.measure(tensors, KINDS, table, None)
            return table
        except (RuntimeError, TypeError, ValueError):
            pass
    return measure(tensors)


def measure_deeply(tensors: list[torch.Tensor]) -> tuple[np.ndarray, np.ndarray | None]:
    """The same with counts of binary exponents; None where a tensor lies on a device or has no memory of its own."""
    if kernel.fused is not None and all(is_lent(t) for t in tensors):
        table = np.empty((len(tensors), len(kernel.COLUMNS)))
        exponents = np.zeros((len(tensors), kernel.BINS), dtype=np.int32)
        try:
            kernel.fused.measure(tensors, KINDS, table, exponents)
            return table, exponents
        except (RuntimeError, TypeError, ValueError):
            return measure(tensors), None
    if all(isinstance(t, torch.Tensor) and t.is_cpu for t in tensors):
        return kernel.measure_exponents([to_numpy(t) for t in tensors])
    return measure(tensors), None


def _measure_lent(tensors: list[torch.Tensor]) -> np.ndarray:
    assert kernel.fused is not None
    table = np.zeros((len(tensors), len(kernel.COLUMNS)))
    try:
        kernel.fused.measure(tensors, KINDS, table, None)
    except RuntimeError:  # inside vmap and its like a tensor has no memory: nothing was counted
        if len(tensors) > 1:
            return np.concatenate([_measure_lent([tensor]) for tensor in tensors])
        table[:] = 0
    return table


def is_lent(array: Any) -> bool:
    """Does it lie in host memory as its dtype and strides say?"""
    return type(array) in LENT and array.is_cpu and array.layout is torch.strided and array.dtype in KINDS and not array.is_neg()


def measure_on_device(tensors: Sequence[torch.Tensor]) -> np.ndarray:
    """Computed where the tensors live; a row each, and all rows cross over together."""
    with torch.no_grad():
        rows = [_row(t.detach()) for t in tensors]
        devices = {row.device for row in rows}
        if len(devices) == 1:
            return torch.stack(rows).cpu().double().numpy()
        return np.stack([row.cpu().double().numpy() for row in rows])


def _row(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.to_dense().reshape(-1) if tensor.is_sparse else tensor.reshape(-1)
    # Some accelerators have no float64.
    wide = flat.to(torch.float32 if tensor.device.type == "mps" else torch.float64)
    finite = torch.isfinite(wide)
    nans, zeros = torch.isnan(wide).sum(), (wide == 0).sum()
    count, known = wide.numel(), finite.sum()
    values = torch.where(finite, wide, torch.zeros_like(wide))
    mean = values.sum() / known.clamp(min=1)
    m2 = torch.where(finite, values - mean, torch.zeros_like(wide)).square().sum()
    any_known = known > 0
    nothing = torch.zeros((), dtype=wide.dtype, device=wide.device)
    if count:
        low = torch.where(finite, wide, torch.full_like(wide, torch.inf)).min()
        high = torch.where(finite, wide, torch.full_like(wide, -torch.inf)).max()
    else:
        low = high = nothing
    low, high = torch.where(any_known, low, nothing), torch.where(any_known, high, nothing)
    parts = [torch.full_like(nothing, count), mean, m2, low, high, values.abs().sum(), zeros, nans, count - known - nans]
    return torch.stack([part.to(wide.dtype) for part in parts])
