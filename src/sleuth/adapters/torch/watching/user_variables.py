"""The user's variables, where they may hold things of torch."""

from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.common import user_variables as core
from sleuth.adapters.common.user_variables import CONTAINERS, Variable, adding_line, exchanges, rebound
from sleuth.adapters.torch.place import TORCH

__all__ = ["CONTAINERS", "Variable", "adding_line", "exchanges", "rebound", "variables"]

HIDDEN = ("_parameters", "_buffers", "_backward_hooks", "_forward_hooks", "__wrapped__")


def variables(frame: FrameType | None, seconds: float) -> Iterator[Variable]:
    return core.variables(frame, seconds, _parts, (TORCH,))


def _parts(value: Any) -> Iterator[tuple[str, Any]] | None:
    """Tensors and optimisers hold what they hold on purpose; a module's layers are its attributes."""
    if isinstance(value, torch.Tensor | Optimizer):
        return iter(())
    return _attributes(value) if isinstance(value, nn.Module) else None


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, inner in list(vars(module).items()):
        if name == "_modules":
            yield from ((f".{word}", layer) for word, layer in inner.items())
        elif name not in HIDDEN:
            yield f".{name}", inner
