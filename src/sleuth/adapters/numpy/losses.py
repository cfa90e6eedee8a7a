"""The loss of a hand-written model and its gradients, from whichever place the user wrote them in."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from sleuth.adapters.common.manual_loop.calling import Offers, call, takes_nothing
from sleuth.adapters.common.manual_loop.loss_function import Call, Forward, LossFunction, one_number, written_at
from sleuth.adapters.numpy.forms.functions import ByHand
from sleuth.adapters.numpy.forms.layers import Layers
from sleuth.core.errors import Unsupported
from sleuth.core.location import Location
from sleuth.core.subject import Parts

OWN_LOSSES = ("compute_loss", "forward_loss")


class Loss(ABC):
    """`sees_output`: the loss is a function of output and target, so it can be asked at other points too."""

    sees_output = False

    def __init__(self, model: Any, forward: Forward) -> None:
        self.model = model
        self.forward = forward

    @abstractmethod
    def evaluate(self, batch: Parts) -> Call: ...

    def gradients(self, batch: Parts) -> tuple[float, Any]:
        """The loss, and what backward() returned."""
        backward = backward_of(self.model)
        if self.sees_output and takes_nothing(backward) and own_loss(self.model) is None:
            raise Unsupported("backward() takes no gradient and the model has no compute_loss(x, y) for it to differentiate")
        made = self.evaluate(batch)
        value = one_number(made.value)
        offers: Offers = {
            "gradient": lambda: self.output_gradient(made, batch),
            "output": lambda: made.output,
            "inputs": lambda: batch.inputs,
            "target": lambda: batch.target,
            "training": lambda: True,
        }
        if isinstance(self.model, ByHand):
            return value, call(
                backward, {**offers, **self.model.offers()}, ("parameters", "cache", "gradient"), self.model.names()
            )
        if isinstance(self.model, Layers):
            return value, self.model.gradients_from(offers)
        return value, call(backward, offers, ("gradient",))

    @abstractmethod
    def output_gradient(self, made: Call, batch: Parts) -> Any: ...

    @abstractmethod
    def written(self) -> Any:
        """The function or object that the user wrote."""

    def location(self) -> Location | None:
        """Where that function begins."""
        return written_at(self.written())


class GivenLoss(LossFunction, Loss):
    """`loss(output, target)`, beside the model."""

    sees_output = True

    def __init__(self, model: Any, forward: Forward, loss: Any) -> None:
        Loss.__init__(self, model, forward)
        LossFunction.__init__(self, forward, loss)


class OwnLoss(Loss):
    """The model's own compute_loss(x, y) or forward_loss(x, y), which backward() then differentiates."""

    def evaluate(self, batch: Parts) -> Call:
        offers: Offers = {"inputs": lambda: batch.inputs, "target": lambda: batch.target, "batch": lambda: batch.raw}
        return Call(call(self.written(), offers, ("inputs", "target")))

    def written(self) -> Any:
        return own_loss(self.model)

    def output_gradient(self, made: Call, batch: Parts) -> Any:
        if isinstance(made.returned, tuple) and len(made.returned) > 1:
            return made.returned[1]
        name = getattr(self.written(), "__name__", "compute_loss")
        raise Unsupported(f"backward wants the gradient by the output, and {name}() gives only the loss: return (loss, gradient)")


class StepLoss(Loss):
    """`step(model, batch)` returns the loss."""

    def __init__(self, model: Any, forward: Forward, step: Callable[[Any, Any], Any]) -> None:
        super().__init__(model, forward)
        self.step = step

    def evaluate(self, batch: Parts) -> Call:
        return Call(self.step(self.model, batch.raw))

    def written(self) -> Any:
        return self.step

    def output_gradient(self, made: Call, batch: Parts) -> Any:
        if isinstance(made.returned, tuple) and len(made.returned) > 1:
            return made.returned[1]
        raise Unsupported("backward wants the gradient by the output, and step() gives only the loss: give loss= instead")


def own_loss(model: Any) -> Callable[..., Any] | None:
    return next((f for name in OWN_LOSSES if callable(f := getattr(model, name, None))), None)


def backward_of(model: Any) -> Callable[..., Any]:
    backward = getattr(model, "backward", None)
    if not callable(backward):
        raise Unsupported("the model has no backward()")
    return backward
