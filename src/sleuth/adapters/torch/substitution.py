"""Other answers in the place of the model's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from sleuth.adapters.torch.bench import TorchBench
from sleuth.adapters.torch.compared import LossArguments, rows_given
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.usage import calls_heard, detached
from sleuth.core.contract.adapter import Compared
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts


@contextmanager
def answers_changed(model: nn.Module, change: Callable[[Any], Any]) -> Iterator[None]:
    """Each call of the model returns `change(output)`."""
    hook = model.register_forward_hook(lambda module, given, output: change(output))
    try:
        yield
    finally:
        hook.remove()


class OtherAnswers:
    """Puts other answers in the place of what a loss function inside the model is given."""

    def __init__(self, whole: Any, call: Compared, change: Callable[[Any], Any]) -> None:
        """`whole`: what the model answers, of which the loss may be given a part."""
        self._rows = rows_given(whole, call) if is_tensor(whole) else None
        if self._rows is None:
            raise Unsupported("where the loss inside the model has its answers from cannot be told")
        self._width = whole.shape[min(2, whole.dim() - 1) :]
        self._changed = change(whole)

    def __call__(self, given: torch.Tensor) -> torch.Tensor:
        rows = self._changed.reshape(-1, *self._width)[torch.as_tensor(self._rows)]
        if len(self._width) == 1 and given.dim() > 2 and given.shape[1] == self._width[0] != given.shape[-1]:
            # The classes stand on axis 1.
            return rows.reshape(given.shape[0], *given.shape[2:], -1).movedim(-1, 1).to(given.dtype)
        return rows.reshape(given.shape).to(given.dtype)


def loss_inside_with(bench: TorchBench, batch: Parts, change: Callable[[Any], Any]) -> float:
    """The same dice fall both times."""
    heard: list[Any] = []
    dice = torch.get_rng_state()
    with calls_heard(bench.model, lambda given, output: heard.append(detached(output))), LossArguments() as mode:
        bench.loss(batch)
    torch.set_rng_state(dice)
    if len(mode.heard) != 1 or len(heard) != 1 or bench.answers is None:
        raise Unsupported("the model has no single loss function inside whose answers could be exchanged")
    answered = bench.answered(heard, mode.heard)[0]
    with LossArguments(OtherAnswers(answered, mode.heard[0], change)):
        return bench.loss(batch)
