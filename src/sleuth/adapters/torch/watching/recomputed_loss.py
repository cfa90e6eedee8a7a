"""A loss that was heard, as a function of the model's output and the target: to be called again on other batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from sleuth.adapters.torch.loss_calls import bind_arguments
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.step_memory import LossHeard, View
from sleuth.core.runtime.tree import leaves


@dataclass(frozen=True)
class LossAgain:
    """`shape` is what was made of the output first; None: it was given as it is."""

    name: str
    settings: Mapping[str, Any]
    path: str
    order: tuple[int, ...] | None  # of the axes
    shape: tuple[int, ...] | None

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, output: Any, target: Any) -> Any:
        found = dict(leaves(output, is_tensor))[self.path]
        if self.order is not None:
            found = found.permute(self.order)
        if self.shape is not None:
            found = found.reshape(-1, *self.shape[1:])
        return getattr(functional, self.name)(**{"input": found, "target": target, **self.settings})


def loss_again(heard: LossHeard, output: torch.Tensor) -> tuple[LossAgain, torch.Tensor] | None:
    """With the target that it was given. None: something else than the output was put into it."""
    bound = bind_arguments(heard.name, tuple(heard.args), heard.kwargs)
    target, given = bound.pop("target", None), bound.pop("input", None)
    if not is_tensor(target) or not isinstance(given, View) or given.call != 0:
        return None
    if any(isinstance(value, View | tuple) for value in bound.values()):
        return None
    if given.size is None:
        return LossAgain(heard.name, bound, given.path, None, None), target
    form = _form(given, output)
    return None if form is None else (LossAgain(heard.name, bound, given.path, *form), target)


def target_of(heard: LossHeard) -> torch.Tensor | None:
    target = bind_arguments(heard.name, tuple(heard.args), heard.kwargs).get("target")
    return target if is_tensor(target) else None


Form = tuple[tuple[int, ...] | None, tuple[int, ...] | None]


def _form(view: View, output: torch.Tensor) -> Form | None:
    """How an argument was made from the whole output: its axes in another order, or reshaped."""
    size = view.size or ()
    if view.offset or torch.Size(size).numel() != output.numel() or not size:
        return None
    if view.stride == _contiguous(size):
        return None, size
    if len(size) != output.dim():
        return None
    strides = list(output.stride())
    if len(set(strides)) != len(strides) or sorted(strides) != sorted(view.stride):
        return None
    return tuple(strides.index(stride) for stride in view.stride), None


def _contiguous(size: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for length in reversed(size):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))
