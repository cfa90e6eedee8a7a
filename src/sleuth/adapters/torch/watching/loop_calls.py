"""What a loop calls beside the model, the backward and the step: clearing, clipping, schedulers, scalers."""

import time
from collections.abc import Callable
from itertools import islice
from typing import Any, Concatenate, ParamSpec

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.watching import created_at, patches
from sleuth.adapters.torch.watching.call_places import Places, calling_frame, users_line
from sleuth.adapters.torch.watching.calls import Calls
from sleuth.adapters.torch.watching.listener_switch import ListenerSwitch
from sleuth.adapters.torch.watching.optimisers import Optimisers

P = ParamSpec("P")
Method = Callable[Concatenate[Any, P], None]
# Of a module's parameters: enough to see whether it has gradients at all.
SOME = 16


def contained(method: Method[P]) -> Method[P]:
    """Our errors never reach the user: the watch gives up and says so. The time spent is counted."""

    def call(watcher: "Order", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if watcher.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(watcher, *args, **kwargs)
        except Exception as error:
            watcher.gave_up = error
        watcher.measured_seconds += time.perf_counter() - began

    return call


class Order(patches.Listener):
    """The part of a watcher that hears them."""

    switch: ListenerSwitch

    def __init__(self, model: nn.Module, optimisers: Optimisers) -> None:
        self.model, self.optimisers = model, optimisers
        self.gave_up: Exception | None = None
        self.measured_seconds = 0.0
        self.calls = Calls()
        self.places = Places()
        self.schedule: tuple[created_at.Made, type] | None = None  # the loop's scheduler
        self.unscaled: torch.Tensor | None = None  # what a scaler was given, until it goes backward
        self.scaler_enabled = False
        self.on_scale = False  # the gradients wait for a scaler to bring them back to their size

    @contained
    def hear_call(self, kind: str, thing: Any) -> None:
        frame = calling_frame()
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        if kind == "zero_grad":
            held = self.optimisers.known(thing)
            if held is None and isinstance(thing, Optimizer):
                return
            for states in self.optimisers.states if held is None else (held.states,):
                states.clear()
        if kind == "unscale":
            self.on_scale = False
        self.calls.say(kind)
        self.places.note(kind, frame)

    @contained
    def hear_made(self, optimiser: Optimizer) -> None:
        self.optimisers.made(optimiser, users_line(calling_frame()))

    @contained
    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        frame = calling_frame()
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        optimiser = getattr(scheduler, "optimizer", None)
        held = self.optimisers.find(optimiser) if isinstance(optimiser, Optimizer) else None
        if held is None:
            return
        if self.schedule is None and (made := created_at.made(scheduler)) is not None:
            self.schedule = made, type(scheduler)
        stepped = held.steps or held.carried or getattr(optimiser, "_opt_called", False)
        kind = "told-scheduler" if told else "scheduler" if stepped else "first-scheduler"
        self.calls.say(f"{kind}@{held.number}")
        self.places.note(kind, frame)

    @contained
    def hear_clip(self) -> None:
        for states in self.optimisers.states:
            states.settle()

    @contained
    def hear_clip_end(self, owner: Any) -> None:
        touched = {states.handle() for states in self.optimisers.states}
        if "fresh" in touched:
            kind = "clip-on-scaled-gradient" if self.on_scale else "clip"
        elif "used" in touched:
            kind = "clip-on-used-gradient"
        elif "empty" in touched or self._has_no_gradient(owner):
            kind = "clip-on-nothing"
        else:
            return
        self.calls.say(kind)
        self.places.note(kind, calling_frame())

    def _has_no_gradient(self, owner: Any) -> bool:
        """Is this a part of the model, and does nothing in it have a gradient?"""
        some = list(islice(owner.parameters(), SOME)) if isinstance(owner, nn.Module) else [owner]
        own = {id(p) for p in self.model.parameters()}
        return any(id(p) in own for p in some) and all(p is None or p.grad is None for p in some)

    @contained
    def hear_scale(self, loss: torch.Tensor, enabled: bool) -> None:
        self.unscaled, self.scaler_enabled, self.switch.needed = loss, enabled, True

    @contained
    def hear_scaler_step(self, optimiser: Optimizer) -> None:
        held = self.optimisers.known(optimiser)
        # A step that took place has emptied the list.
        if self.calls and not self.calls.last.startswith("step") and held is not None:
            used = held.states.step(reading=False) == "step-on-used-gradient"
            self.calls.say("skipped-on-used-gradient" if used else "skipped")
            self.on_scale = False
