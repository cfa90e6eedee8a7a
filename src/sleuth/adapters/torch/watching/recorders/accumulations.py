"""Steps that more than one backward feeds, on the first looks: what each backward was given, beside what its loss returned."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.optim import Optimizer

from sleuth.adapters.listening.recorder import Note
from sleuth.adapters.torch.loss_calls import bind_arguments, scalar
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.call_places import users_line
from sleuth.adapters.torch.watching.loop import Loop, LoopRecorder
from sleuth.adapters.torch.watching.recorders.losses import Trail, sampled
from sleuth.core.observation import Accumulation, Part

# Steps that are followed; afterwards nobody listens here.
FOLLOWED = 4
# Of a step's backwards; more parts than these look no different.
MOST_PARTS = 32

# Name, reduction, target, place and what was returned: copies of small numbers, which may still be on a device.
Noted = tuple[str, Any, Any, Any, torch.Tensor]


class Accumulations(LoopRecorder):
    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._trail: Trail[Noted] = Trail()
        self._parts: list[tuple[Any, list[Noted]]] = []
        self._forwards = 0
        self._followed = 0
        self._gradients: list[torch.Tensor | None] = []  # a few values, one an optimiser
        self._touched: Any = False
        self._number = 0

    @property
    def _listening(self) -> bool:
        return self._followed < FOLLOWED and self.loop.looking

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._forwards += torch.is_grad_enabled()

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if self._listening and len(self._parts) < MOST_PARTS and is_tensor(returned) and returned.requires_grad:
            bound = bind_arguments(name, args, kwargs)
            target = _target(bound.get("target"))
            noted = (name, bound.get("reduction", "mean"), target, users_line(sys._getframe()), returned.detach().clone())
            self._trail.note(returned, noted)

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        if self._trail:
            self._trail.backward(loss)

    def backward_end(self, loss: torch.Tensor) -> None:
        if self._listening and len(self._parts) < MOST_PARTS:
            self._parts.append((self.loop.loss, self._trail.used()))
            self._gradients = [_some_gradient(optimiser) for optimiser in self.loop.optimisers]

    def before_step(self, number: int) -> None:
        self._number = number
        if not self._listening:
            return
        # With a closure the backwards are still to come.
        # An optimiser that was not known before has none.
        before = self._gradients[number] if len(self._parts) > 1 and number < len(self._gradients) else None
        now = _some_gradient(self.loop.optimisers[number])
        self._touched = before is None or now is None or now.shape != before.shape or (now != before).any()

    def take(self) -> Sequence[Note]:
        parts, touched, forwards = self._parts, self._touched, self._forwards
        self._parts, self._gradients, self._touched, self._forwards = [], [], False, 0
        self._trail.clear()
        if not self.loop.looking or self._followed >= FOLLOWED:
            return ()
        self._followed += 1
        if len(parts) < 2:
            return ()
        return [partial(_observations, self.loop.steps, parts, forwards, touched, self._number)]


def _some_gradient(optimiser: Optimizer | None) -> torch.Tensor | None:
    for group in optimiser.param_groups if optimiser is not None else ():
        for parameter in group["params"]:
            if parameter.grad is not None and not parameter.grad.is_sparse:
                return parameter.grad.detach().flatten()[:8].clone()
    return None


def _target(target: Any) -> torch.Tensor | None:
    if not is_tensor(target) or not target.numel() or target.is_complex():
        return None
    values = sampled(target).double()
    return torch.stack([values.min(), values.max(), values.mean()])


def _observations(
    step: int, parts: list[tuple[Any, list[Noted]]], forwards: int, touched: Any, optimiser: int
) -> Sequence[Accumulation]:
    return [Accumulation(step, tuple(_part(*part) for part in parts), forwards, bool(touched), optimiser)]


def _part(value: Any, heard: list[Noted]) -> Part:
    if len(heard) != 1:
        return Part(scalar(value), None)
    name, reduction, target, location, returned = heard[0]
    numbers = () if target is None else tuple(target.tolist())
    return Part(scalar(value), scalar(returned) if not returned.dim() else None, name, reduction, numbers, location)
