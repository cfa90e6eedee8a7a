"""Whom does a loop call: the model, or parts of it through methods of the model's own (`training_step`, `encode`)?

Known only when the first loss goes backward. Until then every call of a module is heard, and a watch that was opened on the
wrong one is opened again.
"""

import inspect
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.listening.patches import tell
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.finding_models import find_model
from sleuth.adapters.torch.watching.joint_models import Several

# A method that calls layer after layer is the model's forward by another name: taken apart it would be no model any more.
MOST_PARTS = 8
# Of batches that a loader gave before the first call; more than that are drawn ahead by nobody.
MOST_EVENTS = 16


class FirstCalls:
    """Of one training, until its first backward."""

    def __init__(self, model: nn.Module, name: str) -> None:
        self.model = model  # that is watched now
        self._whole = model, name
        self._events: list[tuple[str, Any, Any]] = []

    def note(self, event: str, iterator: Any, given: Any) -> None:
        """Something of a batch was heard, and whoever listens in its place later has missed it."""
        if torch.is_grad_enabled():
            self._events = [*self._events, (event, iterator, given)][-MOST_EVENTS:]

    def repeat(self, before: Iterable[Any]) -> None:
        """For those who listen only now."""
        known = {id(listener) for listener in before}
        fresh = [listener for listener in patches.LISTENERS if id(listener) not in known]
        for event in self._events:
            tell(fresh, "hear_again", *event)

    def better(self, called: nn.Module, optimisers: list[Optimizer], frame: FrameType | None) -> tuple[nn.Module, str] | None:
        """Which model is to be watched instead, as this one is called; None: the right one is."""
        whole, name = self._whole
        if not torch.is_grad_enabled() or called in _roots(self.model):
            return None
        if called in _roots(whole):
            return whole, name
        inside = next((top for top in _roots(whole) if any(m is called for m in top.modules())), None)
        if self.model is not whole or inside is None or _is_in_forward(inside):
            return None
        found, name = find_model(optimisers, frame, called)
        return None if len(_roots(found)) > MOST_PARTS else (found, name)

    def is_settled(self, called: nn.Module) -> bool:
        return torch.is_grad_enabled() and called in _roots(self._whole[0])


def _roots(model: nn.Module) -> list[nn.Module]:
    return list(model.children()) if isinstance(model, Several) else [model]


def _is_in_forward(model: nn.Module) -> bool:
    """`model.forward(x)`: it is called, though nobody can hear it."""
    code = getattr(inspect.unwrap(type(model).forward), "__code__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code and frame.f_locals.get(frame.f_code.co_varnames[0]) is model:
            return True
        frame = frame.f_back
    return False
