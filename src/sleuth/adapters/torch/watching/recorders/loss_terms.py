"""A loss as a sum of terms: what `mean`, `sum` and `none` return comes to the same scale."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import torch

from sleuth.adapters.torch.loss_calls import scalar
from sleuth.adapters.torch.pass_listener import is_tensor

OF_CLASSES = ("cross_entropy", "nll_loss")
ELEMENTWISE = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "binary_cross_entropy", "binary_cross_entropy_with_logits",
)  # fmt: skip
IGNORED = -100
WHOLE = 1e-4

Number = float | torch.Tensor  # a tensor: on a device


class Scale(Enum):
    """What a loss was divided by."""

    TERM = "term"
    SAMPLE = "sample"


class Terms(NamedTuple):
    total: Number | None  # None: it is weighed, and not a mean
    terms: Number
    samples: int

    def scaled(self, scale: Scale) -> float | None:
        total, terms = (None if n is None else scalar(torch.as_tensor(n)) for n in (self.total, self.terms))
        count = terms if scale is Scale.TERM else self.samples
        return None if total is None or not count else total / count

    def scale_of(self, value: float) -> Scale | None:
        """On which of them is this loss?"""
        known = ((scale, self.scaled(scale)) for scale in Scale)
        return next((s for s, mine in known if mine is not None and abs(mine - value) <= WHOLE * abs(value)), None)


def terms_of(name: str, bound: Mapping[str, Any], returned: torch.Tensor) -> Terms | None:
    """None: nobody knows how many samples these are."""
    target, output, reduction = bound.get("target"), bound.get("input"), bound.get("reduction", "mean")
    if not is_tensor(target) or (returned.dim() and reduction != "none"):
        return None
    samples = target.shape[0] if target.dim() else 1
    count = _count(name, bound, target, output)
    value = _number(returned.detach().sum() if returned.dim() else returned.detach())
    weighed = is_tensor(bound.get("weight")) or is_tensor(bound.get("pos_weight"))
    if reduction == "mean":
        return Terms(
            value * (samples if count is None or weighed else count), samples if count is None or weighed else count, samples
        )
    if weighed or count is None or reduction not in ("sum", "none", "batchmean"):
        return Terms(None, samples, samples)
    return Terms(value * samples if reduction == "batchmean" else value, count, samples)


def _count(name: str, bound: Mapping[str, Any], target: torch.Tensor, output: Any) -> Number | None:
    if name in OF_CLASSES:
        if target.is_floating_point():
            return target.numel() / target.shape[1 if target.dim() > 1 else 0]
        return _number((target != bound.get("ignore_index", IGNORED)).sum())
    return max(output.numel(), target.numel()) if name in ELEMENTWISE and is_tensor(output) else None


def _number(value: torch.Tensor) -> Number:
    """On a device nobody waits for it."""
    return float(value) if value.is_cpu else value.float()
