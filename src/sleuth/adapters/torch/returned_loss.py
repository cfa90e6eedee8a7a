"""A loss that the model itself returns: the step is done again as the user did it, and what the model answered is looked up
where the loss inside was given it."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from sleuth.adapters.common.call_form import CallForm
from sleuth.adapters.torch.compared import LossArguments, rows_given
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.watching.loss_tape import around
from sleuth.adapters.torch.watching.origin.tape import Tape
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves

NO_ANSWERS = "the model returns its loss and nothing that the loss was computed from"


@dataclass(frozen=True)
class ReturnedLoss:
    """`path`: of the loss in what the model returns. `tape`: what the user's lines made of it. `answers`: of the answers."""

    form: CallForm
    path: str
    tape: Tape | None = None
    answers: str | None = None

    @property
    def __name__(self) -> str:
        return "your model's loss"

    def __call__(self, model: nn.Module, raw: Any) -> torch.Tensor:
        return self.of(self.called(model, raw))

    def called(self, model: nn.Module, raw: Any) -> Any:
        args, kwargs = self.form.together(*raw)
        return model(*args, **kwargs)

    def of(self, output: Any) -> torch.Tensor:
        made = dict(leaves(output, is_tensor))
        if self.tape is None:
            return made[self.path]
        known = {slot: made[path] for slot, (_, path) in self.tape.outputs.items()}
        known |= {slot: source.value.clone() for slot, source in self.tape.leaves.items()}
        return self.tape.run(known, around)

    def answered(self, output: Any) -> Any:
        if self.answers is not None:
            return dict(leaves(output, is_tensor))[self.answers]
        others = {path: t for path, t in leaves(output, is_tensor) if path != self.path and t.dim() and t.is_floating_point()}
        if not others:
            raise Unsupported(NO_ANSWERS)
        return others

    def with_answers(self, model: nn.Module, raw: Any) -> "ReturnedLoss":
        """It knows which part of what the model returns its loss function was given, if that can be seen."""
        with torch.no_grad(), LossArguments() as mode:
            output = self.called(model, raw)
        found = [path for path, t in leaves(output, is_tensor) if any(rows_given(t, call) is not None for call in mode.heard)]
        return replace(self, answers=found[0]) if len(found) == 1 else self
