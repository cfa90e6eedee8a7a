"""What a recorder of a torch loop may know of the watch that it belongs to."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import nn

from sleuth.adapters.listening.recorder import Recorder
from sleuth.core.contract.guard import Guard
from sleuth.core.location import Location


class Loop(Protocol):
    model: nn.Module
    steps: int  # the number of the step that is going on
    loss: float | torch.Tensor | None  # of the latest backward, before a scaler; a tensor: on a device; None: not one number

    guard: Guard
    due: list[Callable[[], None]]  # called before the optimiser writes, where they may raise
    scaled: bool  # the latest backward began at what a scaler made of the loss
    stepping: int  # the optimiser that steps, or stepped last

    @property
    def optimisers(self) -> Sequence[Any]:
        """By number. More may come while the watch is open, and None stands for one that is gone."""

    @property
    def looking(self) -> bool:
        """Is the step that is going on looked at in full?"""

    @property
    def inside_step(self) -> bool:
        """Are we inside the optimiser's step? A backward there is a closure's."""

    @property
    def inside_closure(self) -> bool:
        """Does the step run a closure?"""

    def listen_on(self, steps: int) -> None:
        """The next so many steps are to be listened to in full, one after the other."""

    def do_what_is_due(self) -> None:
        """May raise: only from where the user's own call is."""

    def give_up(self, error: Exception) -> None: ...

    def note_lost(self, what: str, error: Exception) -> None:
        """An error of ours after which the listening goes on: the report says it."""

    def recent_steps(self) -> list[dict[str, Any]]: ...

    def lines(self) -> dict[str, Location | None]: ...


class LoopRecorder(Recorder):
    """A recorder of a torch loop. `torch.is_grad_enabled()` tells training from validation in `forward`; `batch` and `index`
    are given the loader's iterator; with a closure `before_step` is told before the closure runs."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
