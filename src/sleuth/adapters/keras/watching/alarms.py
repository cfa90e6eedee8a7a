"""Before anything is written: what the user asked to be told, or stopped by."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.model_parts import trainable
from sleuth.adapters.keras.watching.record import number
from sleuth.core.contract.guard import Alarm, Guard
from sleuth.core.observation import NotFinite


class Alarms:
    def __init__(self, model: Any, guard: Guard, step: Callable[[], int]) -> None:
        self._model, self.guard, self._step = model, guard, step

    def before_step(self, losses: Sequence[Any], scale: float, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
        for alarm in list(self._found(losses, scale, gradients, variables)):
            act = self.guard.tell(alarm)
            if act is not None:
                act.do()

    def _found(self, losses: Sequence[Any], scale: float, gradients: Sequence[Any], variables: Sequence[Any]) -> Iterator[Alarm]:
        step = self._step()
        if self.guard.every_gradient and (value := number(losses)) is not None and not math.isfinite(value):
            nans = int(math.isnan(value))
            seen = NotFinite(step, "loss", nans=nans, infs=1 - nans)
            yield Alarm("loss-not-finite", step, f"the loss of step {step} is {value / scale}", (seen,))
        # An optimiser that scales the loss leaves out steps with such gradients itself.
        elif self.guard.every_gradient and scale == 1.0 and (bad := self._bad(gradients, variables)) is not None:
            yield Alarm("gradient-not-finite", step, f"the gradient of {bad.where} is not finite at step {step}", (bad,))
        while self.guard.asked:
            found = self.guard.asked.popleft()
            yield Alarm(found.name, step, found.summary, finding=found)

    def _bad(self, gradients: Sequence[Any], variables: Sequence[Any]) -> NotFinite | None:
        for gradient, variable in zip(gradients, variables, strict=False):
            values = None if gradient is None else backend.values(gradient)
            if values is not None and not np.isfinite(values).all():
                paths = {id(held.variable): held.path for held in trainable(self._model)}
                nans = int(np.isnan(values).sum())
                return NotFinite(self._step(), "gradient", paths.get(id(variable)), nans, int(np.isinf(values).sum()))
        return None
