"""Is a gradient that the optimiser is about to use finite? A few speak for all, unless every one is to be looked at."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import torch
from torch.optim import Optimizer

from sleuth import kernel
from sleuth.adapters.torch.measuring import KINDS, is_lent, measure

# A NaN born in a backward spreads towards the first parameters, one born in the loss reaches the last ones too. Among so many
# at each end the smallest one is asked; the first one itself, unless it is larger than this: it lies behind all others.
ENDS = 4
SMALL = 4096
NANS, INFS = (kernel.COLUMNS.index(name) for name in ("nans", "infs"))


class Bad(NamedTuple):
    parameter: torch.Tensor
    nans: int
    infs: int


class Tripwire:
    """Of one optimiser, which is not kept alive."""

    def __init__(self, optimiser: Optimizer, every: bool) -> None:
        self._optimiser, self._every = ref(optimiser), every
        self._spokesmen: list[torch.Tensor] = []
        self._fast = False

    def look(self, *, looking: bool) -> Bad | None:
        """`looking`: the step is looked at in full. All gradients are read then anyway, so that all are asked where a few cannot
        be asked quickly: on another device."""
        if self._every:
            return _first_bad(self._with_gradient())
        gradients = [parameter.grad for parameter in self._spokesmen]
        if len(gradients) < 2 or gradients[0] is None or gradients[1] is None:
            gradients = self._choose()
        if self._fast and kernel.fused.all_finite(gradients, KINDS):  # type: ignore[union-attr]
            return None
        return _first_bad(self._with_gradient()) if self._fast or looking else None

    def _with_gradient(self) -> list[torch.Tensor]:
        optimiser = self._optimiser()
        groups = [] if optimiser is None else optimiser.param_groups
        return [p for group in groups for p in group["params"] if p.grad is not None]

    def _choose(self) -> list[Any]:
        """Those on another device are not asked at every step: that would wait for it."""
        found = self._with_gradient()
        first = found[:1] if found and found[0].numel() <= SMALL else found[:ENDS]
        ends = [min(part, key=torch.Tensor.numel) for part in (first, found[-ENDS:]) if part]
        self._spokesmen = ends
        gradients = [p.grad for p in ends if p.grad is not None]
        self._fast = kernel.fused is not None and len(ends) == 2 and all(is_lent(g) for g in gradients)
        return gradients


def _first_bad(parameters: Sequence[torch.Tensor]) -> Bad | None:
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return None
    with torch.no_grad():
        dense = [g.coalesce().values() if g.is_sparse else g for g in gradients]
        table = measure(dense)
    (rows,) = np.nonzero(table[:, NANS] + table[:, INFS])
    if not rows.size:
        return None
    first = int(rows[0])
    return Bad(parameters[first], int(table[first, NANS]), int(table[first, INFS]))
