"""Which sample of a batch broke a step: by values that are not finite, else by standing out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

# More are no culprits but a batch that is ill as a whole.
MOST = 4
# Robust deviations from the median at which a sample stands out; of a normal distribution one in 1e15 does.
STANDS_OUT = 8.0
# Fewer samples have no spread to speak of.
FEWEST = 4


@dataclass(frozen=True)
class Accused:
    position: int
    reason: str
    certain: bool


def not_finite(name: str, tensors: Iterable[torch.Tensor], size: int, certain: bool = True) -> list[Accused]:
    """The rows of tensors whose first axis counts samples, or samples times something."""
    for tensor in tensors:
        rows = bad_rows(tensor, size)
        if rows:
            words = "NaN" if bool(torch.isnan(tensor).any()) else "Inf"
            return [Accused(row, f"{name} {words}", certain) for row in rows]
    return []


def bad_rows(tensor: torch.Tensor, size: int) -> list[int]:
    """Empty as well when most are bad: then it says nothing of a sample."""
    if not _counts_samples(tensor, size):
        return []
    (bad,) = torch.nonzero(~torch.isfinite(tensor.detach().reshape(size, -1)).all(1), as_tuple=True)
    rows: list[int] = bad.tolist()
    return rows if len(rows) <= MOST and (len(rows) * 2 <= size or size == 1) else []


def outlier(named: Sequence[tuple[str, torch.Tensor]], size: int) -> list[Accused]:
    """The sample whose largest value lies far beyond those of all others."""
    for name, tensor in named:
        if size < FEWEST or not _counts_samples(tensor, size):
            continue
        largest = tensor.detach().reshape(size, -1).double().abs().nan_to_num(0.0, 0.0, 0.0).amax(1)
        middle = largest.median()
        spread = (largest - middle).abs().median() * 1.4826 + 1e-6 * middle.abs() + 1e-30
        far = (largest - middle) / spread
        row = int(far.argmax())
        if float(far[row]) > STANDS_OUT and int((far > STANDS_OUT).sum()) == 1:
            reason = f"{name} reaches {float(largest[row]):.3g}, those of the others about {float(middle):.3g}"
            return [Accused(row, reason, False)]
    return []


def _counts_samples(tensor: torch.Tensor, size: int) -> bool:
    fits = tensor.dim() > 0 and size > 0 and tensor.shape[0] % size == 0 and tensor.shape[0] > 0
    return fits and tensor.is_floating_point() and not tensor.is_sparse and not tensor.is_meta
