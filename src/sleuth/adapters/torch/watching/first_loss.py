"""The loss of the first batch as it came out in training: what is put together anew at the end must come to the same."""

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from sleuth.adapters.torch.watching.step_memory import Forward
from sleuth.adapters.torch.watching.uncompiled import plain_name
from sleuth.core.subject import Parts

# Sums in another order, on another number of threads.
ROUNDING = 1e-4


@dataclass(frozen=True)
class FirstBatch:
    """`random`: the state of the dice before the model was called."""

    loss: float | torch.Tensor | None
    random: torch.Tensor | None
    autocast: tuple[str, torch.dtype] | None
    modes: Mapping[str, bool]  # of the layers: training or not

    @classmethod
    def of(cls, forward: Forward, loss: float | torch.Tensor | None, model: nn.Module) -> "FirstBatch":
        kept = loss.detach().clone() if isinstance(loss, torch.Tensor) else loss
        return cls(kept, forward.random, forward.autocast, {plain_name(name): m.training for name, m in model.named_modules()})

    def set_modes(self, model: nn.Module) -> None:
        for name, module in model.named_modules():
            module.training = self.modes.get(name, True)

    def obstacle(self, model: nn.Module, compute: Callable[[nn.Module, Parts], Any], parts: Parts) -> str:
        """Why the loss that was put together cannot be trusted; empty: it comes to what it was. The model's buffers may move."""
        if self.loss is None:
            return "the loss of the first batch is not known, so it cannot be told whether it was put together rightly"
        before = float(self.loss)
        try:
            with self._as_it_was():
                again = float(compute(model, parts))
        except Exception as error:
            return f"the loss of the first batch could not be computed again: {type(error).__name__}: {error}"
        if again == before or (again != again and before != before) or abs(again - before) <= ROUNDING * abs(before):
            return ""
        return f"computed again, the loss of the first batch is {again:.6g}, and it was {before:.6g}: something else goes into it"

    @contextmanager
    def _as_it_was(self) -> Iterator[None]:
        python, numpy = random.getstate(), np.random.get_state()
        try:
            with ExitStack() as stack, torch.no_grad():
                stack.enter_context(torch.random.fork_rng(devices=[]))
                if self.random is not None:
                    torch.set_rng_state(self.random)
                if self.autocast is not None:
                    stack.enter_context(torch.autocast(*self.autocast))
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
