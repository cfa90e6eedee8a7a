"""Gradients, weights and updates of what the optimisers hold, on steps that are looked at in full."""

from collections.abc import Mapping

import numpy as np
import torch
from torch.optim import Optimizer

from sleuth import kernel
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.measuring import KINDS, is_lent, measure_quickly
from sleuth.kernel import fallback

# An update is measured on so many values of each tensor, evenly spaced: a copy of all weights would cost more than a step may.
SAMPLED = 1024


class Weights:
    """Of one optimiser. The list of its parameters is read anew when its length changes."""

    def __init__(self, optimiser: Optimizer, names: Mapping[int, str], number: int) -> None:
        self._optimiser, self._names, self._number = optimiser, names, number
        self._parameters: list[torch.Tensor] = []
        self._paths: tuple[str, ...] = ()
        self._kept = np.zeros(0)
        self._fast = False
        self.refresh()

    @property
    def parameters(self) -> list[torch.Tensor]:
        return self._parameters

    def refresh(self) -> None:
        found = [p for group in self._optimiser.param_groups for p in group["params"]]
        if len(found) == len(self._parameters):
            return
        self._parameters = found
        self._paths = tuple(self._names.get(id(p), f"optimiser {self._number} · {i}") for i, p in enumerate(found))
        self._kept = np.zeros(sum(kernel.sample_size(p.numel(), SAMPLED) for p in found))
        self._fast = kernel.fused is not None and all(is_lent(p) for p in found)

    def gradients(self) -> tuple[tuple[str, ...], np.ndarray]:
        reached = [(path, p.grad) for path, p in zip(self._paths, self._parameters, strict=True) if p.grad is not None]
        return tuple(path for path, _ in reached), measure_quickly([g for _, g in reached])

    def weights(self) -> tuple[tuple[str, ...], np.ndarray]:
        return self._paths, measure_quickly(self._parameters)

    def keep(self) -> None:
        if self._fast and kernel.fused is not None:
            kernel.fused.keep(self._parameters, KINDS, self._kept, SAMPLED)
        else:
            fallback.keep([to_numpy(p) for p in self._parameters], self._kept, SAMPLED)

    def updates(self) -> tuple[tuple[str, ...], np.ndarray]:
        table = np.zeros((len(self._parameters), len(kernel.COLUMNS)))
        if self._fast and kernel.fused is not None:
            kernel.fused.changes(self._parameters, KINDS, self._kept, SAMPLED, table)
        else:
            fallback.changes([to_numpy(p) for p in self._parameters], self._kept, SAMPLED, table)
        return self._paths, table
