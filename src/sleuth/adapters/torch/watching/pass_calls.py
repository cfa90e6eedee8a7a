"""What a loop does between two steps of its optimiser: batches, calls of the model, losses, backwards."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from sleuth.adapters.listening.listener import contained
from sleuth.adapters.listening.recorder import Recorders
from sleuth.adapters.torch.watching import created_at
from sleuth.adapters.torch.watching.call_places import calling_frame
from sleuth.adapters.torch.watching.divided_loss import DividedLoss
from sleuth.adapters.torch.watching.full_look import FullLooks
from sleuth.adapters.torch.watching.last_words import pending
from sleuth.adapters.torch.watching.loop_calls import LoopCalls
from sleuth.adapters.torch.watching.optimisers import Optimisers
from sleuth.adapters.torch.watching.phase_seconds import PhaseSeconds
from sleuth.core.location import Location
from sleuth.core.observation.calls import WITHOUT_GRAPH, CallKind

# A loop that does not step says so after so many backwards, and again whenever they have doubled.
LONG_WITHOUT_STEP = 32
# Looks at which gradients are read to see whether somebody clears them by hand: a loop does so from the start, or never.
READ_LOOKS = 8


class PassCalls(LoopCalls):
    """The part of a watcher that hears them."""

    recorders: Recorders
    full_looks: FullLooks
    say: Callable[[Any], None]  # observations, or notes of which some are made later: in order, between the steps

    def __init__(self, model: nn.Module, optimisers: Optimisers) -> None:
        super().__init__(model, optimisers)
        self.loss: float | torch.Tensor | None = None
        self.scaled = False
        self.failed_backward = 0
        self.trained_on: Location | None = None  # where the loader of the training's batches was made
        self._loader: Location | None = None  # that of the batches which come now
        self._losses: list[float | torch.Tensor] = []
        self._losses_before = 0
        self._divided = DividedLoss()
        self._inside_step = 0
        self._phases = PhaseSeconds(model)

    @property
    def looking(self) -> bool:
        return self.full_looks.look is not None

    @property
    def inside_step(self) -> bool:
        return self._inside_step > 0

    @contained
    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if torch.is_grad_enabled():
            kind = CallKind.FORWARD if self.model.training else CallKind.FORWARD_IN_EVAL
        else:
            kind = CallKind.VALIDATE_IN_TRAIN if self.model.training else CallKind.VALIDATE
        self.calls.say(kind)
        if kind in WITHOUT_GRAPH:
            self.calls.note_input(args[0] if args and isinstance(args[0], torch.Tensor) else None)
        self.places.note(kind, calling_frame())
        self.recorders.tell("forward", args, kwargs)
        self._phases.forward()

    @contained
    def hear_output(self, output: Any) -> None:
        self._phases.output()
        if isinstance(output, torch.Tensor) and not output.requires_grad:
            self.calls.without_graph()
        self.recorders.tell("output", output)

    @contained
    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None:
        self._losses_before = len(self._losses)
        self.calls.say(CallKind.BACKWARD)
        self.places.note(CallKind.BACKWARD, calling_frame())
        self.full_looks.backward()
        self.scaled = self.unscaled is not None
        self.on_scale = self.scaled and self.scaler_enabled
        value, self.unscaled = (loss if self.unscaled is None else self.unscaled), None
        self.loss = None
        if value.numel() == 1:
            self.loss = value.item() if value.is_cpu else value.detach()
            self._losses.append(self.loss)
        self._divided.backward(value)
        for states in self.optimisers.states:
            states.before_backward()
        self.recorders.tell("backward", loss, options)
        self._phases.backward()

    @contained
    def hear_backward_end(self, loss: torch.Tensor) -> None:
        self._phases.backward_end()
        reached = [states.after_backward(reading=self._reading) for states in self.optimisers.states]
        if not any(reached):  # the backward of another model
            self.switch.needed = True
            self._losses = self._losses[: self._losses_before]
            self._divided.unsay()
            self.calls.unsay(CallKind.BACKWARD)
            return
        self.trained_on = self.trained_on or self._loader
        self.recorders.tell("backward_end", loss)
        if self._inside_step:
            for states in self.optimisers.states:
                states.used_elsewhere()
        backwards = self.calls.count(CallKind.BACKWARD)
        if backwards >= LONG_WITHOUT_STEP and backwards & (backwards - 1) == 0:
            self.say(pending(self))

    @contained
    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None:
        self.failed_backward = id(error)  # the error itself would keep the user's frames alive
        self.recorders.tell("backward_failed", loss)

    @contained
    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        self.recorders.tell("loss", name, args, kwargs, returned)

    @contained
    def hear_index(self, iterator: Any, positions: Any) -> None:
        self.recorders.tell("index", iterator, positions)

    @contained
    def hear_batch(self, iterator: Any, batch: Any) -> None:
        first = iterator._num_yielded <= 1
        self._phases.data(first)
        if first:
            self.optimisers.begin_pass()
            if torch.is_grad_enabled():
                self._loader = created_at.made_at(iterator._index_sampler)
        self.places.note(CallKind.BATCH, calling_frame())
        self.recorders.tell("batch", iterator, batch)

    @contained
    def hear_again(self, event: str, iterator: Any, given: Any) -> None:
        """An index or a batch that was given before this watch was opened: its line is not known any more."""
        if event == "batch" and iterator._num_yielded <= 1:
            self.optimisers.begin_pass()
            self._loader = created_at.made_at(iterator._index_sampler)
        self.recorders.tell(event, iterator, given)

    @property
    def _reading(self) -> bool:
        return self.looking and self.looks < READ_LOOKS
