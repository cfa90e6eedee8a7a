"""Gradients and steps on Keras' torch backend."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from sleuth.adapters.keras.broadcasting import Meeting
from sleuth.adapters.keras.sides import Side
from sleuth.core.contract.workload import Hear, Heard
from sleuth.core.errors import Unsupported


class TorchSide(Side):
    def without_gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        with torch.no_grad():
            return compute(given)

    def gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> tuple[Any, list[Any]]:
        variables = self.model.trainable_variables
        self.clear()
        loss = compute(given)
        loss.backward()
        found = [v.value.grad for v in variables]
        self.clear()
        return loss.detach(), found

    def meeting(self, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
        from sleuth.adapters.keras.torch_broadcasting import meeting

        return meeting(self.model, compute, output, target)

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        with torch.no_grad():
            yield

    def clear(self) -> None:
        for variable in self.model.trainable_variables:
            variable.value.grad = None

    def apply(self, optimiser: Any, gradients: Sequence[Any]) -> None:
        if all(gradient is None for gradient in gradients):
            raise Unsupported("the loss reaches no variable that is trained, so there is nothing to step")
        with torch.no_grad():
            optimiser.apply(list(gradients), list(self.model.trainable_variables))

    def gradient_by(self, compute: Callable[[Any], Any], given: Any) -> Any:
        array = given.detach().clone().requires_grad_(True)
        (found,) = torch.autograd.grad(compute(array), array)
        return found

    def told(self, heard: Heard, array: Any, value: Hear, gradient: Hear | None) -> Any:
        value(heard, array.detach())
        if gradient is not None and array.requires_grad:
            array.register_hook(lambda slope: gradient(heard, slope.detach()))
        return array
