"""Which of the forms a loss has, and the one of functions beside weights in a dict."""

from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.calling import Offers, call, positional, role_of, takes, takes_nothing
from sleuth.adapters.common.manual_loop.loss_function import Call, Forward, one_number
from sleuth.adapters.numpy.forms.differences import by_difference
from sleuth.adapters.numpy.forms.functions import ByHand, is_array
from sleuth.adapters.numpy.losses import GivenLoss, Loss, OwnLoss, StepLoss, own_loss
from sleuth.adapters.numpy.state import put_back, remember
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
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
        value, rest, moved = self._undone(self._offers(batch))
        self.model.moves = bool(moved) or self.model.looks_like_weights(rest)
        return Call(value if rest is None or self.model.moves else (value, rest))

    def _undone(self, offers: Offers) -> tuple[Any, Any, dict[str, np.ndarray]]:
        """(the loss, what else the step returned, what it took off each weight; empty if it left them alone). The weights are
        put back."""
        before = remember(self.model.params)
        weights = [(name, array, array.copy()) for name, array in self.model.parameters()]
        try:
            value, rest = self.model.run_step(offers)
            fresh = rest if self.model.looks_like_weights(rest) else self.model.params
            now = [array for _, array in leaves(fresh, is_array)]
            moved = {name: values - new for (name, _, values), new in zip(weights, now, strict=True)}
        finally:
            if any(not np.array_equal(array, values, equal_nan=True) for _, array, values in weights) or self._replaced(weights):
                put_back(before)
        return value, rest, moved if any(taken.any() for taken in moved.values()) else {}

    def _replaced(self, weights: list[tuple[str, np.ndarray, np.ndarray]]) -> bool:
        return any(a is not b for (_, a, _), (_, b) in zip(weights, self.model.parameters(), strict=True))

    def gradients(self, batch: Parts) -> tuple[float, Any]:
        made = self.evaluate(batch)
        rest = made.returned[1] if isinstance(made.returned, tuple) and len(made.returned) > 1 else None
        if rest is not None and self.model.backward is None:
            return one_number(made.value), rest
        if self.model.backward is None:
            return one_number(made.value), self._by_difference(batch)
        self.model.cache = self.model.cache if rest is None else rest
        offers = {**self.model.offers(), **self._offers(batch)}
        return one_number(made.value), call(self.model.backward, offers, ("parameters", "cache"), self.model.names())

    def _by_difference(self, batch: Parts) -> dict[str, np.ndarray]:
        """Of a step that is given its rate."""
        if not takes(self.function, "rate"):
            told = "return (loss, grads) from it, let it take its rate (lr), or give backward="
            raise Unsupported(f"the step trains and shows no gradients: {told}")
        names = [name for name, _ in self.model.parameters()]
        nothing = {name: np.zeros_like(array) for name, array in self.model.parameters()}
        found = by_difference(lambda rate: self._undone({**self._offers(batch), "rate": lambda: rate})[2] or nothing)
        self.model.moves = any(array.any() for array in found.values())
        return {name: found[name] for name in names}

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
