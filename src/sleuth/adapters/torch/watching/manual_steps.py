"""The steps of a loop that writes its weights itself, told as those of an optimiser."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from sleuth.adapters.listening.discovery import Discovery
from sleuth.adapters.listening.patches import tell
from sleuth.adapters.torch.watching import patches
from sleuth.adapters.torch.watching.events import TorchEvents
from sleuth.adapters.torch.watching.joint_models import Several
from sleuth.adapters.torch.watching.manual_updates import MOST_LEAVES, MOVES, ByHand, free_of_other_modes, writes, written_by
from sleuth.adapters.torch.watching.measured_rate import Measuring
from sleuth.adapters.torch.watching.model_calls import Root

# After its first steps a rate is measured at each so many.
EVERY = 16


class ManualSteps(TorchEvents):
    """Tells whoever watches of the steps: one begins at the first write to a weight after a backward, so that what is done to the
    gradients before (clipping) comes before it, and is over when the loop goes on."""

    def __init__(self, optimiser: ByHand, model: nn.Module, discovery: Discovery) -> None:
        self.optimiser, self._discovery = optimiser, discovery
        self._parameters: list[torch.Tensor] = optimiser.param_groups[0]["params"]
        # On a device everybody would have to wait for the number.
        self._measured = next((p for p in self._parameters if p.is_cpu), None)
        self._mark: tuple[int, int] | None = None
        self._is_stepping = False
        self._steps = 0
        self._measuring: Measuring | None = None
        self._first_write: FirstWrite | None = None
        self._unseen = False  # writes go another way than through torch's functions
        # Before the watcher's own: a step is over when the model is called.
        parts = list(model.children()) if isinstance(model, Several) else [model]
        self._roots = [Root(part, self) for part in parts]

    def open(self) -> None:
        """After the watcher's: the backward has been heard when the step begins."""
        patches.join(self)

    def close(self) -> None:
        self._wait_no_longer()
        self._end_step()
        patches.leave(self)
        while self._roots:
            self._roots.pop().leave()

    def give_up(self, error: Exception) -> None:
        self._wait_no_longer()
        self._discovery.give_up(error)

    def hear_forward(self, args: Any, kwargs: Any) -> None:
        self.go_on()

    def hear_backward(self, loss: torch.Tensor, options: Any) -> None:
        self._wait_no_longer()
        self._mark = self._gradient()

    def hear_backward_end(self, loss: torch.Tensor) -> None:
        if self._gradient() == self._mark:  # it was the backward of another model
            return
        if self._unseen or not free_of_other_modes():
            self._begin_step()
        else:
            self._first_write = FirstWrite(self._parameters, self._first_writes)
            self._first_write.__enter__()

    def go_on(self) -> None:
        waited = self._wait_no_longer()
        if self._is_stepping:
            self._end_step()
            self._discovery.leave_when_enough()
        else:
            self._unseen |= waited

    def _wait_no_longer(self) -> bool:
        """Was a write waited for?"""
        waiting, self._first_write = self._first_write, None
        if waiting is None:
            return False
        waiting.leave()
        return True

    def _gradient(self) -> tuple[int, int] | None:
        gradient = self._parameters[0].grad
        return None if gradient is None else (id(gradient), gradient._version)

    def _first_writes(self) -> None:
        self._begin_step()
        group = self.optimiser.param_groups[0]
        if "lr" in group and self._measured is not None and (self._steps <= EVERY or self._steps % EVERY == 0):
            self._measuring = Measuring.of(self._measured)

    def _begin_step(self) -> None:
        self._is_stepping = True
        self._steps += 1
        tell(list(patches.LISTENERS), "hear_step", self.optimiser, None)

    def _end_step(self) -> None:
        if self._is_stepping:
            self._is_stepping = False
            self._measure_rate()
            tell(list(patches.LISTENERS), "hear_step_end", self.optimiser)

    def _measure_rate(self) -> None:
        """A rate that the loop lowers itself is known only by what it does."""
        measuring, self._measuring = self._measuring, None
        rate = None if measuring is None else measuring.rate()
        if rate is not None:
            self.optimiser.param_groups[0]["lr"] = rate


class FirstWrite(TorchFunctionMode):
    """Calls `begin` right before the user's code writes to one of these tensors, or makes a new one of it as a step would."""

    def __init__(self, tensors: Sequence[torch.Tensor], begin: Callable[[], None]) -> None:
        self._known = {t.data_ptr() for t in tensors[:MOST_LEAVES]}
        self._begin: Callable[[], None] | None = begin
        self._thread = threading.get_ident()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._begin is not None:
            try:
                if self._is_write(func, args, kwargs or {}):
                    begin, self._begin = self._begin, None
                    begin()
            except Exception:  # the user's code goes on
                self._begin = None
        return func(*args, **(kwargs or {}))

    def _is_write(self, func: Any, args: Any, kwargs: Any) -> bool:
        name = getattr(func, "__name__", "")
        if writes(func, name):
            targets: Any = written_by(args)
        elif name in MOVES and not torch.is_grad_enabled():
            targets = args
        else:
            targets = (kwargs.get("out"),)
        return any(isinstance(t, torch.Tensor) and t.data_ptr() in self._known for t in targets)

    def leave(self) -> None:
        self._begin = None
        if threading.get_ident() == self._thread and torch.overrides._get_current_function_mode() is self:
            self.__exit__(None, None, None)
