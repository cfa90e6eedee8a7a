"""What the loss functions are given while a bench computes its loss, and other answers in the place of that."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.loss_calls import FAMILIES, bind_arguments
from sleuth.adapters.torch.pass_listener import is_tensor, name_of
from sleuth.core.contract.adapter import Compared
from sleuth.core.reading.positions import rows_in

WITH_CLASSES = ("cross_entropy", "nll_loss")
# What torch leaves out where nobody says anything.
IGNORED = -100


class LossArguments(TorchFunctionMode):
    """Hears each call of a loss function, outside and inside the model; `change` goes over the output that it is given."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        super().__init__()
        self.heard: list[Compared] = []
        self._change = change

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if name not in FAMILIES:
            return func(*args, **kwargs)
        bound = bind_arguments(name, args, kwargs)
        output, target = bound.get("input"), bound.get("target")
        if not (is_tensor(output) and is_tensor(target)):
            return func(*args, **kwargs)
        ignored = bound.get("ignore_index", IGNORED) if name in WITH_CLASSES and not target.is_floating_point() else None
        self.heard.append(Compared(name, output.detach(), target.detach(), ignored))
        if self._change is not None:
            return func(**{**bound, "input": self._change(output)})
        return func(*args, **kwargs)


def rows_given(whole: torch.Tensor, call: Compared) -> np.ndarray | None:
    """Which rows of `whole`, samples or samples and positions, a loss function was given; None: it was given others."""
    if whole.dim() < 2 or not whole.is_floating_point():
        return None
    return rows_in(to_numpy(whole), to_numpy(call.output), axes=min(2, whole.dim() - 1))
