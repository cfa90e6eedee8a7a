"""Which of the forms a loss has, and the one of functions beside weights in a dict."""

from typing import Any

import numpy as np

from sleuth.adapters.numpy.calling import Offers, call, positional, role_of, takes, takes_nothing
from sleuth.adapters.numpy.forms.functions import ByHand
from sleuth.adapters.numpy.losses import Call, Forward, GivenLoss, Loss, OwnLoss, StepLoss, one_number, own_loss
from sleuth.adapters.numpy.state import put_back, remember
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts


class FunctionLoss(Loss):
    """`loss(params, x, y)` or a step beside weights in a dict: returns the loss, or the loss and the gradients.

    A step that trains is undone after it has told its loss.
    """

    def __init__(self, model: ByHand, forward: Forward, function: Any) -> None:
        super().__init__(model, forward)
        self.function = function

    def evaluate(self, batch: Parts) -> Call:
        if self.function is not self.model.written:
            return Call(call(self.function, {**self.model.offers(), **self._offers(batch)}, ("parameters", "inputs", "target"),
                             self.model.names()))  # fmt: skip
        before = remember(self.model.params)
        weights = [(array, array.copy()) for _, array in self.model.parameters()]
        value, rest = self.model.run_step(self._offers(batch))
        now = [array for _, array in self.model.parameters()]
        moved = any(a is not b or not np.array_equal(a, c) for (a, c), b in zip(weights, now, strict=True))
        self.model.moves = moved or self.model.looks_like_weights(rest)
        if moved:
            put_back(before)
        return Call(value if rest is None or self.model.moves else (value, rest))

    def gradients(self, batch: Parts) -> tuple[float, Any]:
        made = self.evaluate(batch)
        rest = made.returned[1] if isinstance(made.returned, tuple) and len(made.returned) > 1 else None
        if rest is not None and self.model.backward is None:
            return one_number(made.value), rest
        if self.model.backward is None:
            raise Unsupported("the step trains and shows no gradients: return (loss, grads) from it, or give backward=")
        self.model.cache = self.model.cache if rest is None else rest
        offers = {**self.model.offers(), **self._offers(batch)}
        return one_number(made.value), call(self.model.backward, offers, ("parameters", "cache"), self.model.names())

    def _offers(self, batch: Parts) -> Offers:
        rate = getattr(self.model, "lr", 1e-3)
        return {
            "inputs": lambda: batch.inputs,
            "target": lambda: batch.target,
            "batch": lambda: batch.raw,
            "rate": lambda: rate,
            "output": lambda: self.forward(batch.inputs),
        }

    def written(self) -> Any:
        return self.function

    def output_gradient(self, made: Call, batch: Parts) -> Any:
        raise Unsupported("the loss is not asked for the gradient by its output")


def make_loss(model: Any, forward: Forward, loss: Any, step: Any) -> Loss | None:
    """None when there is no loss at all."""
    if isinstance(model, ByHand) and model.written is not None:
        return FunctionLoss(model, forward, model.written)
    if isinstance(model, ByHand) and loss is not None and (takes(loss, "parameters") or takes(loss, "inputs")):
        return FunctionLoss(model, forward, loss)
    own = own_loss(model)
    if step is not None:
        return StepLoss(model, forward, step)
    if loss is not None and (own is None or not takes_nothing(getattr(model, "backward", call))):
        return GivenLoss(model, forward, loss)
    if own is None:
        return None
    parameters = positional(own)
    if parameters and role_of(parameters[0]) == "output":
        return GivenLoss(model, forward, own)
    return OwnLoss(model, forward)
