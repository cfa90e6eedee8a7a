"""What the patches of torch tell whoever listens."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.optim import Optimizer

from sleuth.core.observation.calls import CallKind


class TorchEvents:
    """Whoever listens overrides what it wants to hear. None of these is trusted not to raise: see listening.patches.tell."""

    def hear_forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Of the model itself; see model_calls.py."""

    def hear_output(self, output: Any) -> None: ...

    def hear_backward(self, loss: torch.Tensor, options: Mapping[str, Any]) -> None: ...

    def hear_backward_end(self, loss: torch.Tensor) -> None: ...

    def hear_backward_failed(self, loss: torch.Tensor, error: BaseException) -> None: ...

    def hear_call(self, kind: CallKind, thing: Any) -> None: ...

    def hear_scheduler(self, scheduler: Any, told: bool) -> None:
        """`told`: it was given a metric or an epoch."""

    def hear_clip(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None: ...

    def hear_clip_end(self) -> None: ...

    def hear_made(self, optimiser: Optimizer) -> None: ...

    def hear_step(self, optimiser: Optimizer, closure: Any) -> None: ...

    def hear_step_end(self, optimiser: Optimizer) -> None: ...

    def hear_scale(self, loss: torch.Tensor, enabled: bool) -> None: ...

    def hear_scaler_step(self, optimiser: Optimizer) -> None: ...

    def hear_loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None: ...

    def hear_index(self, iterator: Any, positions: Any) -> None: ...

    def hear_batch(self, iterator: Any, batch: Any) -> None: ...

    def hear_again(self, event: str, iterator: Any, given: Any) -> None:
        """`index` or `batch`, for one who listens only since: see first_calls.py."""

    def give_up(self, error: Exception) -> None:
        """One of these methods raised."""
        raise NotImplementedError

    def speak_up(self) -> None:
        """At the end of a backward, and before the optimiser writes. May raise."""
