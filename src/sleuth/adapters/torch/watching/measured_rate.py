"""The learning rate of an update by hand, measured: what a weight moved by, divided by its gradient."""

from typing import NamedTuple

import torch

# Of each tensor.
KEPT_VALUES = 256
# Of what was moved: an update with momentum, a decay or signs differs from the gradient by more.
ANOTHER_DIRECTION = 1e-3
# Rounding errors of a weight, each of which may be one of its update.
ROUNDING = 2.0


def sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.detach().flatten()
    return flat[:: max(1, len(flat) // KEPT_VALUES)].clone()


class Measuring(NamedTuple):
    """One weight, before it is written."""

    tensor: torch.Tensor
    values: torch.Tensor
    gradient: torch.Tensor

    @classmethod
    def of(cls, tensor: torch.Tensor, values: torch.Tensor | None = None) -> "Measuring | None":
        if tensor.grad is None or tensor.grad.layout is not torch.strided or not tensor.is_floating_point():
            return None
        return cls(tensor, sample(tensor) if values is None else values, sample(tensor.grad))

    def rate(self) -> float | None:
        """After the update; None: it does not follow the gradient alone."""
        now = sample(self.tensor)
        if now.shape != self.values.shape or now.shape != self.gradient.shape:
            return None
        moved, gradient = (self.values.double() - now.double()), self.gradient.double()
        square = float(gradient @ gradient)
        if not 0 < square < float("inf"):
            return None
        rate = float(moved @ gradient) / square
        rounding = ROUNDING * torch.finfo(now.dtype).eps * float(self.values.double().norm())
        off = float((moved - rate * gradient).norm())
        # Where rounding hides most of it, no number is as good as measured.
        certain = rate > 0 and off <= ANOTHER_DIRECTION * float(moved.norm()) + rounding
        return rate if certain and float(moved.norm()) > 100 * rounding else None
