"""Sums along each axis of what a loss was given: they show over which axis it was normalised."""

import torch

# Beyond this the sums would cost more than the step.
LARGE = 20_000_000
# Log-probabilities are at most zero; log(p + 1e-8) of a sure class may round to slightly above.
ABOVE_ZERO = 0.01

Ranges = tuple[tuple[float, float], ...]


def axis_sums(tensor: torch.Tensor) -> Ranges:
    return _ranges(tensor.detach().double()) if _addable(tensor) and bool(torch.isfinite(tensor).all()) else ()


def exp_sums(tensor: torch.Tensor) -> Ranges:
    # −inf is a masked class: exp makes it zero.
    if not _addable(tensor) or float(tensor.detach().max()) > ABOVE_ZERO:
        return ()
    return _ranges(tensor.detach().double().exp())


def _addable(tensor: torch.Tensor) -> bool:
    if tensor.is_meta or not tensor.is_floating_point() or tensor.dim() < 1 or not 0 < tensor.numel() <= LARGE:
        return False
    return not bool(torch.isnan(tensor).any())


def _ranges(wide: torch.Tensor) -> Ranges:
    sums = [wide.sum(axis) for axis in range(wide.dim())]
    return tuple((float(s.min()), float(s.max())) for s in sums)
