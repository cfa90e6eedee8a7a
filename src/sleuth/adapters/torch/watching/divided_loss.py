"""A loss that is divided by the number of backwards that make up a step, by the loop or by its library (Accelerate, Lightning).

What the user looks at is the loss before that.
"""

from collections.abc import Sequence

import torch

from sleuth.adapters.torch.watching.record import mean_of

ROUNDING = 1e-6


class DividedLoss:
    def __init__(self) -> None:
        self._divisors: list[float] = []  # of the backwards since the last step
        self._parts = 1.0  # that the loss was found to be divided into

    def backward(self, loss: torch.Tensor) -> None:
        self._divisors.append(_divisor(loss))

    def unsay(self) -> None:
        """It was another model's."""
        del self._divisors[-1:]

    def step(self) -> None:
        """That was heard in full."""
        divisors, self._divisors = self._divisors, []
        divided = bool(divisors) and max(divisors) - min(divisors) <= ROUNDING * max(divisors)
        if not divided or divisors[0] <= 1:
            self._parts = 1.0
        elif abs(divisors[0] - len(divisors)) <= ROUNDING * divisors[0]:
            self._parts = divisors[0]
        elif abs(divisors[0] - self._parts) > ROUNDING * self._parts:  # the last step of an epoch may have fewer
            self._parts = 1.0

    def whole(self, losses: Sequence[float | torch.Tensor]) -> float | torch.Tensor | None:
        """The mean of a step's losses before they were divided."""
        mean = mean_of(list(losses))
        return mean if mean is None or self._parts == 1 else mean * self._parts


def _divisor(loss: torch.Tensor) -> float:
    """By what number it was divided last; 1: by none."""
    node = loss.grad_fn
    name = "" if node is None else node.name()
    if name not in ("DivBackward0", "MulBackward0"):
        return 1.0
    number, other = getattr(node, "_saved_other", None), getattr(node, "_saved_self", None)
    # On a device one would have to wait for it.
    if (
        not isinstance(number, torch.Tensor)
        or other is not None
        or number.numel() != 1
        or not number.is_cpu
        or number.requires_grad
    ):
        return 1.0
    value = float(number)
    return value if name == "DivBackward0" else 1.0 / value if value else 1.0
