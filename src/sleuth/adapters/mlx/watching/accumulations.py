"""Steps that more than one gradient feeds: what each loss said, and what became of the sum of their gradients."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import mlx.core as mx
import numpy as np

from sleuth.adapters.mlx.arrays import values
from sleuth.adapters.mlx.loss_calls import heard_calls, number_of
from sleuth.adapters.mlx.pass_listener import Hearing
from sleuth.core.observation import Accumulation, Part

if TYPE_CHECKING:
    from sleuth.adapters.mlx.watching.full_look import Look

# What a factor may leave over, as a share of the sum.
ROUNDING = 1e-3


class Backward(NamedTuple):
    loss: mx.array
    hearing: Hearing
    path: str
    gradient: mx.array  # of the smallest parameter: it stands for all


def backward_of(loss: mx.array, hearing: Hearing, gradients: dict[str, mx.array]) -> Backward | None:
    path = min(gradients, key=lambda p: gradients[p].size, default=None)
    return None if path is None else Backward(loss, hearing, path, gradients[path])


def accumulation(look: "Look", step: int, optimiser: int) -> Iterator[Accumulation]:
    """Of a look that is computed. In MLX the user adds gradients up by hand, and divides the sum rather than the losses: that is
    told as if each loss had been divided."""
    parts = look.parts
    if len(parts) < 2 or len({p.path for p in parts}) > 1 or parts[0].path not in look.gradients:
        return
    factor = _factor(values(look.gradients[parts[0].path]), np.stack([values(p.gradient) for p in parts]).sum(0, np.float64))
    told = tuple(_part(p, 1.0 if factor is None else factor, look) for p in parts)
    yield Accumulation(step, told, len(parts), touched=factor is None, optimiser=optimiser, by_hand=True)


def _factor(used: np.ndarray, total: np.ndarray) -> float | None:
    """used = factor · total; None: something else was done to it."""
    size = float((total * total).sum())
    if not np.isfinite(size) or size == 0 or used.shape != total.shape:
        return None
    factor = float((used * total).sum() / size)
    left = float(np.abs(used - factor * total).max())
    # One of the parts alone is not their sum.
    return factor if factor and left <= ROUNDING * float(np.abs(used).max()) else None


def _part(part: Backward, factor: float, look: "Look") -> Part:
    value = number_of(part.loss)
    calls = list(heard_calls(part.hearing, part.loss, look.made))
    scaled = None if value is None else value * factor
    if len(calls) != 1:
        return Part(scaled, None)
    call = calls[0]
    target = call.argument("target")
    told = () if target is None else (target.facts.statistics.min, target.facts.statistics.max, target.facts.statistics.mean)
    return Part(scaled, call.returned, call.name, call.reduction, told, call.location)
