"""What may be listened for in the user's loop beside the watcher's own notes: one concern an ear."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import nn

from sleuth.core.contract.guard import Guard
from sleuth.core.location import Location
from sleuth.core.observation import Observation

# An observation, or how to make some later: off the training thread.
Note = Observation | Callable[[], Iterable[Observation]]


class Loop(Protocol):
    """What an ear may know of the watch it belongs to."""

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

    def speak_up(self) -> None:
        """Does what is due now. May raise: only from where the user's own call is."""

    def recent_steps(self) -> list[dict[str, Any]]: ...

    def lines(self) -> dict[str, Location | None]: ...


class Recorder:
    """Overrides what it wants to hear: what is not overridden costs nothing. Runs inside the user's training, so it is cheap
    and leaves numbers and random states alone. One that raises hears nothing any more, and the report says so."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is about to be called; `torch.is_grad_enabled()` tells training from validation."""

    def output(self, output: Any) -> None:
        """What that call returned."""

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        """A loss function of torch.nn.functional was called, by anybody."""

    def backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        """Before a backward."""

    def backward_end(self, loss: torch.Tensor) -> None:
        """After a backward that reached the optimisers' parameters."""

    def backward_failed(self, loss: torch.Tensor) -> None:
        """Instead of the end of a backward: it raised, whoever may catch that."""

    def index(self, iterator: Any, positions: Any) -> None:
        """A loader's iterator drew these positions of its data set, maybe long before the batch comes."""

    def batch(self, iterator: Any, batch: Any) -> None:
        """A loader's iterator gives this batch."""

    def before_step(self, number: int) -> None:
        """Optimiser `number` is about to write; with a closure, before that runs."""

    def after_step(self, number: int) -> None: ...

    def resumed(self) -> None:
        """Steps went by that this ear was not told of."""

    def take(self) -> Sequence[Note]:
        """Once a step, at its end, and once after `close`: what was heard since the last time."""
        return ()

    def close(self) -> None:
        """The watch ends."""


EVENTS: tuple[str, ...] = (
    "forward",
    "output",
    "loss",
    "backward",
    "backward_end",
    "backward_failed",
    "index",
    "batch",
    "before_step",
)
EVENTS += ("after_step", "resumed", "take", "close")


class Recorders:
    """All ears of a watch; knows who overrides what."""

    def __init__(self, ears: Iterable[Recorder]) -> None:
        self.deaf: list[str] = []  # why ears were closed
        self._hearing: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        for ear in ears:
            for event in EVENTS:
                if getattr(type(ear), event) is not getattr(Recorder, event):
                    self._hearing[event].append(getattr(ear, event))

    def wants(self, event: str) -> bool:
        return bool(self._hearing[event])

    def tell(self, event: str, *args: Any) -> None:
        for hear in self._hearing[event]:
            try:
                hear(*args)
            except Exception as error:
                self._close(hear.__self__, error)  # type: ignore[attr-defined]

    def take(self) -> tuple[Note, ...]:
        notes: list[Note] = []
        for take in self._hearing["take"]:
            try:
                notes += take()
            except Exception as error:
                self._close(take.__self__, error)  # type: ignore[attr-defined]
        return tuple(notes)

    def let_go(self) -> None:
        """The ears may be collected, and what they know of the user's objects with them."""
        self._hearing = {event: [] for event in EVENTS}

    def _close(self, ear: Recorder, error: Exception) -> None:
        self._hearing = {
            event: [hear for hear in hearing if hear.__self__ is not ear]  # type: ignore[attr-defined]
            for event, hearing in self._hearing.items()
        }
        self.deaf.append(f"{type(ear).__name__} stopped listening: {type(error).__name__}: {error}")
