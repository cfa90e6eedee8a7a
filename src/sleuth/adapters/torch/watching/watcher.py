"""One watch of a torch loop: notes what every step does, looks at some steps in full, hands both on.

Runs inside the user's training: every method is cheap, none may raise, and none touches numbers or random states.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from sleuth.adapters.torch.watching import activity, taps
from sleuth.adapters.torch.watching.ear import Ears, Note
from sleuth.adapters.torch.watching.ears import EARS
from sleuth.adapters.torch.watching.gradient_states import GradientStates
from sleuth.adapters.torch.watching.pace import Pace
from sleuth.adapters.torch.watching.places import Places, calling_frame
from sleuth.adapters.torch.watching.weights import SAMPLED, Weights
from sleuth.core.location import Location
from sleuth.core.observation import Role

P = ParamSpec("P")
Method = Callable[Concatenate["Watcher", P], None]
# A loop that never steps must not fill the memory with what it called.
MOST_CALLS = 4096
# What noting one layer's output costs; measured by benchmarks/watch.py, too small to take the time of each.
NOTE_SECONDS = 8e-7


@dataclass
class Look:
    """A step seen in full. Rows as in core.statistics."""

    tables: dict[Role, tuple[tuple[str, ...], np.ndarray]] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    """What one step leaves behind; turned into observations off the training thread."""

    step: int
    optimiser: int
    loss: float | torch.Tensor | None  # a tensor: still on a device
    lr: float | None
    calls: tuple[str, ...]
    places: tuple[tuple[str, Location | None], ...]
    seconds: float
    look: Look | None
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    sampled: int = SAMPLED


def quietly(method: Method[P]) -> Method[P]:
    """Our errors never reach the user: the watch gives up and says so. The time spent is counted."""

    def call(watcher: "Watcher", /, *args: P.args, **kwargs: P.kwargs) -> None:
        if watcher.gave_up is not None:
            return
        began = time.perf_counter()
        try:
            method(watcher, *args, **kwargs)
        except Exception as error:
            watcher.gave_up = error
        watcher.own_seconds += time.perf_counter() - began

    return call


class Watcher(taps.Listener):
    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        put: Callable[[Record], None],
        *,
        every: int | None,
        overhead: float,
    ) -> None:
        self.model = model
        self.gave_up: Exception | None = None
        self.own_seconds = 0.0
        self.steps = 0
        self.looks = 0
        self._put = put
        self.optimisers = list(optimisers)
        self._number = {id(o): i for i, o in enumerate(self.optimisers)}
        names = {id(p): path for path, p in model.named_parameters()}
        self._weights = [Weights(o, names, i) for i, o in enumerate(self.optimisers)]
        self._states = [GradientStates(w.parameters) for w in self._weights]
        self._activity = activity.Activity(_leaf_paths(model))
        self._pace = Pace(every=every, overhead=overhead)
        self._places = Places()
        self._ears = Ears(ear(self) for ear in EARS)
        self._calls: list[str] = []
        self._counts: dict[str, int] = {}
        self._losses: list[float | torch.Tensor] = []
        self._calls_before = self._losses_before = 0
        self._unscaled: torch.Tensor | None = None
        self._look: Look | None = None
        self._inside_step = 0
        self._with_closure = False
        self._own_before = 0.0
        self._began = time.perf_counter()
        self._undo: list[Callable[[], None]] = []

    def open(self) -> None:
        taps.join(self)
        self._undo.append(functools.partial(taps.leave, self))
        self._undo.append(taps.Root(self.model, self.hear_forward, self.hear_output).remove)
        for optimiser in self.optimisers:
            self._undo.append(optimiser.register_step_pre_hook(self._pre_hook).remove)
            self._undo.append(optimiser.register_step_post_hook(self._post_hook).remove)
        self._undo.append(lambda: activity.stop_recording(self._activity))
        self._prepare()

    @property
    def looking(self) -> bool:
        return self._look is not None

    @property
    def deaf(self) -> list[str]:
        return self._ears.deaf

    def close(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._ears.tell("close")
        self._activity.drop()
        self._look = None

    @quietly
    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if torch.is_grad_enabled():
            kind = "forward" if self.model.training else "forward-in-eval"
        else:
            kind = "validate-in-train" if self.model.training else "validate"
        self._say(kind)
        self._places.note(kind, calling_frame(3))
        self._ears.tell("forward", args, kwargs)

    @quietly
    def hear_output(self, output: Any) -> None:
        self._ears.tell("output", output)

    # What torch's own classes tell.

    @quietly
    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._calls_before, self._losses_before = len(self._calls), len(self._losses)
        self._say("backward")
        self._places.note("backward", calling_frame(2))
        if self._look is not None:
            self._activity.flush()
        value, self._unscaled = (loss if self._unscaled is None else self._unscaled), None
        if value.numel() == 1:
            self._losses.append(value.detach().item() if value.is_cpu else value.detach())
        for states in self._states:
            states.before_backward()
        self._ears.tell("backward", loss, options)

    @quietly
    def hear_backward_end(self, loss: torch.Tensor) -> None:
        reached = [states.after_backward() for states in self._states]
        if not any(reached):  # the backward of another model
            self._losses = self._losses[: self._losses_before]
            self._calls = self._calls[: self._calls_before]
            self._counts["backward"] -= 1
        else:
            self._ears.tell("backward_end", loss)

    @quietly
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        self._ears.tell("loss", name, args, kwargs, returned)

    @quietly
    def hear_index(self, iterator: Any, positions: Any) -> None:
        self._ears.tell("index", iterator, positions)

    @quietly
    def hear_batch(self, iterator: Any, batch: Any) -> None:
        self._ears.tell("batch", iterator, batch)

    @quietly
    def hear_call(self, kind: str, thing: Any) -> None:
        frame = calling_frame(2)
        if frame.f_code.co_name == "_initial_step":  # a scheduler takes its first step when it is made
            return
        if kind == "zero_grad" and isinstance(thing, Optimizer) and id(thing) not in self._number:
            return
        self._say(kind)
        self._places.note(kind, frame)

    @quietly
    def hear_scale(self, loss: torch.Tensor) -> None:
        self._unscaled = loss

    @quietly
    def hear_scaler_step(self, optimiser: Optimizer) -> None:
        # A step that took place has emptied the list.
        if self._calls and not self._calls[-1].startswith("step") and id(optimiser) in self._number:
            self._say("skipped")

    # The optimisers. A subclass that calls super().step() makes hooks fire twice.

    def _pre_hook(self, optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._inside_step += 1
        if self._inside_step == 1:
            # The optimiser itself is the first of the arguments.
            closure = args[1] if len(args) > 1 else kwargs.get("closure")
            self._before_step(optimiser, closure is not None)

    def _post_hook(self, optimiser: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._inside_step = max(self._inside_step - 1, 0)
        if self._inside_step == 0:
            self._after_step(optimiser)

    @quietly
    def _before_step(self, optimiser: Optimizer, closure: bool) -> None:
        number = self._number[id(optimiser)]
        self._with_closure = closure
        if not closure:
            self._end_of_calls(number)
        self._places.note("step", calling_frame(3))
        self._ears.tell("before_step", number)
        if self._look is None:
            return
        weights = self._weights[number]
        weights.refresh()
        if not closure:
            self._look.tables[Role.ACTIVATION] = self._activity.take()
            self._look.tables[Role.GRADIENT] = weights.gradients()
        self._look.tables[Role.WEIGHT] = weights.weights()
        weights.keep()

    @quietly
    def _after_step(self, optimiser: Optimizer) -> None:
        number = self._number[id(optimiser)]
        if self._with_closure:  # forward and backward ran inside the step
            self._end_of_calls(number)
        look = self._look
        if look is not None:
            activity.stop_recording(self._activity)
            if self._with_closure:
                look.tables[Role.ACTIVATION] = self._activity.take()
                look.tables[Role.GRADIENT] = self._weights[number].gradients()
            look.tables[Role.UPDATE] = self._weights[number].updates()
            self.looks += 1
        self._ears.tell("after_step", number)
        now = time.perf_counter()
        lr = optimiser.param_groups[0].get("lr")
        self._put(
            Record(
                self.steps,
                number,
                _mean(self._losses),
                None if lr is None else float(lr),
                tuple(self._calls),
                tuple(self._places.take()),
                now - self._began,
                look,
                self._counts,
                self._ears.take(),
            )
        )
        self._calls, self._losses, self._counts = [], [], {}
        self._began = now
        self._pace.step_ended(self.steps, look is not None, self.own_seconds - self._own_before)
        self._own_before = self.own_seconds
        self.steps += 1
        self._prepare()

    def _prepare(self) -> None:
        """Is the step that begins now looked at in full?"""
        if self._pace.looks_at(self.steps):
            self._look = Look()
            activity.start_recording(self._activity)
        else:
            self._look = None

    def _end_of_calls(self, number: int) -> None:
        """Several optimisers may stand on the same parameters; only the one that steps uses the gradient."""
        self._say(self._states[number].step())
        self.own_seconds += self._activity.notes * NOTE_SECONDS

    def _say(self, kind: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if (not self._calls or self._calls[-1] != kind) and len(self._calls) < MOST_CALLS:
            self._calls.append(kind)


def _mean(losses: list[float | torch.Tensor]) -> float | torch.Tensor | None:
    if not losses:
        return None
    if all(isinstance(loss, float) for loss in losses):
        return sum(losses) / len(losses)
    return torch.stack([torch.as_tensor(loss) for loss in losses]).float().mean()


def _leaf_paths(model: nn.Module) -> dict[int, str]:
    return {id(module): path for path, module in model.named_modules() if path and not module._modules}
