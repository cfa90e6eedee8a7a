"""A loss that the user's own lines compute, as a function of the model's output and the target: the lines done once more."""

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.numbers_in import numbers_in
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.origin.tape import Recorded, Tape
from sleuth.adapters.torch.watching.origin.tensor_sources import Source
from sleuth.core.runtime.place import done_again
from sleuth.core.runtime.tree import leaves

UNTOLD = "which part of what the loss is computed from is the target cannot be told"


class TapeLoss:
    """`target`: its slot. The model is there for what a loss asks of its weights, as a penalty does."""

    def __init__(self, tape: Tape, target: int, model: nn.Module | None = None) -> None:
        self.tape, self.target, self.model = tape, target, model

    @property
    def __name__(self) -> str:
        return "your loss"

    def __deepcopy__(self, memo: dict[int, Any]) -> "TapeLoss":
        """The tape never changes; the model is the one that is copied beside it."""
        return TapeLoss(self.tape, self.target, self.model if self.model is None else memo.get(id(self.model), self.model))

    def __call__(self, output: Any, target: Any) -> Any:
        made = dict(leaves(output, is_tensor))
        known = {slot: made[path] for slot, (_, path) in self.tape.outputs.items()}
        named = {} if self.model is None else {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for slot, source in self.tape.leaves.items():
            if slot == self.target:
                known[slot] = target
            elif source.parameter is not None:
                known[slot] = named[source.parameter]
            else:
                known[slot] = _like(source.value.clone(), known)
        return self.tape.run(known, _around)


def tape_loss(tape: Tape, samples: int, targets: list[torch.Tensor]) -> "tuple[TapeLoss, torch.Tensor] | str":
    """With the one of `targets` that it uses; or why it cannot be computed again for other batches."""
    if any(call for call, _ in tape.outputs.values()) or any(call.opaque for call in tape.calls):
        return "the loss is computed from more than one output and target"
    if any(_counts(call, samples) for call in tape.calls):
        return f"the loss is computed with a number that may be the size of the batch, {samples}"
    found: list[tuple[int, torch.Tensor]] = []
    for slot, source in tape.leaves.items():
        tensor = None if source.weak is None else source.weak()
        mine = next((t for t in targets if t is tensor), None)
        if mine is not None:
            found.append((slot, mine))
        elif not _is_constant(source, tensor, samples):
            return UNTOLD
    if len(found) != 1:
        return UNTOLD
    return TapeLoss(tape, found[0][0]), found[0][1]


def _is_constant(source: Source, tensor: torch.Tensor | None, samples: int) -> bool:
    """A weight of the model, or a number or a table with a name of its own that is no part of a batch."""
    if source.parameter is not None:
        return True
    if source.input is not None or source.other is not None or source.value is None or tensor is None or tensor.requires_grad:
        return False
    single = source.value.numel() == 1 and source.value.dim() == 0
    return single or (bool(source.variables) and source.value.shape[0] != samples)


def _counts(call: Recorded, samples: int) -> bool:
    """Is something put in that may have to do with how many samples there are?"""
    numbers = list(numbers_in((call.args, call.kwargs)))
    return any(n == 1 / samples or (n > 0 and n % samples == 0) for n in numbers)


def _like(value: torch.Tensor, known: dict[int, torch.Tensor]) -> torch.Tensor:
    """In float64 where all else is."""
    wide = any(t.dtype == torch.float64 for t in known.values())
    return value.double() if wide and value.is_floating_point() else value


def _around(recorded: Recorded) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(done_again(recorded.location))
    return stack
