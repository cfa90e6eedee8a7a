"""Output and target, followed through the operations of a loss on Keras' torch backend."""

from collections.abc import Callable
from typing import Any

import torch

from sleuth.adapters.keras.broadcasting import Meeting
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.adapters.keras.torch_ops import KerasListener
from sleuth.adapters.torch.loss_calls import LossNotes


def meeting(model: Any, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
    listener = KerasListener(Hearing(model))
    notes = LossNotes(listener)
    # Copies: a model may hand its input on as its output.
    given, wanted = output.detach().clone().requires_grad_(output.is_floating_point()), target.detach().clone()
    notes.mark(given, "output")
    notes.mark(wanted, "target")
    with torch.enable_grad(), listener.listening():
        loss = compute(given, wanted)
    if notes.blown is None:
        return None
    made, location, sides = notes.blown
    if not _counts(loss, made):
        return None
    return Meeting(tuple(sides["output"].shape), tuple(sides["target"].shape), tuple(made.shape), location)


def _counts(loss: torch.Tensor, made: torch.Tensor) -> bool:
    """In the loss: a metric beside it may compare as it likes."""
    if not loss.requires_grad or not made.requires_grad:
        return False
    return torch.autograd.grad(loss.sum(), made, allow_unused=True)[0] is not None
