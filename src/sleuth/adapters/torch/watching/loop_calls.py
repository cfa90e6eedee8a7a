"""What a loop calls beside the model, the backward and the step: clearing, clipping, schedulers, scalers."""

import math
from collections.abc import Mapping
from itertools import islice
from types import GeneratorType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.listening.calls import Calls
from sleuth.adapters.listening.listener import Listener, contained
from sleuth.adapters.torch.watching import created_at
from sleuth.adapters.torch.watching.call_places import Places, calling_frame, users_line
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.gradient_states import Touched
from sleuth.adapters.torch.watching.listener_switch import ListenerSwitch
from sleuth.adapters.torch.watching.optimisers import Optimisers
from sleuth.core.observation.calls import CallKind

# Of a module's parameters: enough to see whether it has gradients at all.
SOME = 16


class LoopCalls(Listener, TorchEvents):
    """The part of a watcher that hears them."""

    switch: ListenerSwitch

    def __init__(self, model: nn.Module, optimisers: Optimisers) -> None:
        super().__init__()
        self.model, self.optimisers = model, optimisers
        self.calls = Calls()
        self.places = Places()
        self.schedule: tuple[created_at.Made, type] | None = None  # the loop's scheduler
        self.unscaled: torch.Tensor | None = None  # what a scaler was given, until it goes backward
        self.scaler_enabled = False
        self.on_scale = False  # the gradients wait for a scaler to bring them back to their size
        self._clips = False  # a clip with a limit goes on
        self._clipped: Any = None  # a module or a tensor whose gradient is clipped; None: that cannot be told

    @contained
    def hear_call(self, kind: CallKind, thing: Any) -> None:
        frame = calling_frame()
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        if kind == CallKind.ZERO_GRAD:
            held = self.optimisers.known(thing)
            if held is None and isinstance(thing, Optimizer):
                return
            for states in self.optimisers.states if held is None else (held.states,):
                states.clear()
        if kind == CallKind.UNSCALE:
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
        kind = CallKind.TOLD_SCHEDULER if told else CallKind.SCHEDULER if stepped else CallKind.FIRST_SCHEDULER
        self.calls.say(kind, optimiser=held.number)
        self.places.note(kind, frame)

    @contained
    def hear_clip(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        limit = args[1] if len(args) > 1 else kwargs.get("max_norm", kwargs.get("clip_value"))
        # Without a limit it is a way to ask for the norm.
        self._clips = limit is not None and limit != math.inf
        if self._clips:
            self._clipped = _owner(args[0] if args else kwargs.get("parameters"))
            for states in self.optimisers.states:
                states.settle()

    @contained
    def hear_clip_end(self) -> None:
        clips, self._clips = self._clips, False
        owner, self._clipped = self._clipped, None
        if not clips:
            return
        touched = {states.handle() for states in self.optimisers.states}
        if Touched.FRESH in touched:
            kind = CallKind.CLIP_ON_SCALED_GRADIENT if self.on_scale else CallKind.CLIP
        elif Touched.USED in touched:
            kind = CallKind.CLIP_ON_USED_GRADIENT
        elif Touched.EMPTY in touched or self._has_no_gradient(owner):
            kind = CallKind.CLIP_ON_NOTHING
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
        held, last = self.optimisers.known(optimiser), self.calls.last
        # A step that took place has emptied the list.
        if last is None or last.startswith("step") or held is None:
            return
        used = held.states.step(reading=False) == CallKind.STEP_ON_USED_GRADIENT
        self.calls.say(CallKind.SKIPPED_ON_USED_GRADIENT if used else CallKind.SKIPPED)
        self.on_scale = False


def _owner(parameters: Any) -> Any:
    """Whose parameters these are. A generator can be asked only once, and that is for the user."""
    if isinstance(parameters, torch.Tensor):
        return parameters
    if isinstance(parameters, list | tuple):
        return parameters[0] if parameters and isinstance(parameters[0], torch.Tensor) else None
    if isinstance(parameters, GeneratorType) and parameters.gi_frame is not None:
        names = parameters.gi_frame.f_locals
        return _owner(names[".0"]) if ".0" in names else names.get("self")
    return None
