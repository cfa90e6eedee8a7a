"""Gradients, weights and updates of what the optimisers hold, on steps that are looked at in full."""

import weakref
from collections.abc import Mapping

import numpy as np
import torch
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from sleuth import kernel
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.measuring import KINDS, is_lent, measure_deeply, measure_quickly
from sleuth.kernel import fallback

# An update is measured on so many values of each tensor, evenly spaced: a copy of all weights would cost more than a step may.
SAMPLED = 1024

# Paths, a row of statistics each, and a row of counts of exponents each where these were taken.
Measured = tuple[tuple[str, ...], np.ndarray, np.ndarray | None]


class Weights:
    """Of one optimiser. The list of its parameters is read anew when its length changes."""

    def __init__(self, optimiser: Optimizer, names: Mapping[int, str], number: int) -> None:
        self._optimiser = weakref.ref(optimiser)
        self._names, self._number = names, number
        self._parameters: list[torch.Tensor] = []
        self._paths: tuple[str, ...] = ()
        self._kept = np.zeros(0)
        self._fast = False
        self.refresh()

    @property
    def parameters(self) -> list[torch.Tensor]:
        return self._parameters

    def refresh(self) -> None:
        optimiser = self._optimiser()
        # A lazy one has no shape before its first forward pass; then there is one more.
        held = (p for group in optimiser.param_groups for p in group["params"]) if optimiser is not None else ()
        found = [p for p in held if not is_lazy(p)]
        if optimiser is None or len(found) == len(self._parameters):
            return
        self._parameters = found
        self._paths = tuple(self._names.get(id(p), f"optimiser {self._number} · {i}") for i, p in enumerate(found))
        self._kept = np.zeros(sum(kernel.sample_size(p.numel(), SAMPLED) for p in found))
        self._fast = kernel.fused is not None and all(is_lent(p) for p in found)

    def gradients(self, deep: bool) -> Measured:
        """A part that was frozen on the way keeps zeros for a gradient where nobody set it to None: it has none."""
        pairs = zip(self._paths, self._parameters, strict=True)
        reached = [(path, p.grad) for path, p in pairs if p.grad is not None and p.requires_grad]
        found = [gradient for _, gradient in reached]
        table, exponents = measure_deeply(found) if deep else (measure_quickly(found), None)
        return tuple(path for path, _ in reached), table, exponents

    def keep(self) -> Measured:
        """Statistics of the weights; the sample that the updates are measured by is set aside on the way."""
        if not self._fast or kernel.fused is None:
            fallback.keep([to_numpy(p) for p in self._parameters], self._kept, SAMPLED)
            return self._paths, measure_quickly(self._parameters), None
        table = np.empty((len(self._parameters), len(kernel.COLUMNS)))
        kernel.fused.keep(self._parameters, KINDS, self._kept, SAMPLED, table)
        return self._paths, table, None

    def updates(self) -> Measured:
        table = np.zeros((len(self._parameters), len(kernel.COLUMNS)))
        if self._fast and kernel.fused is not None:
            kernel.fused.changes(self._parameters, KINDS, self._kept, SAMPLED, table)
        else:
            fallback.changes([to_numpy(p) for p in self._parameters], self._kept, SAMPLED, table)
        return self._paths, table, None
