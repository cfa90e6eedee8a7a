"""The loss: an output of the compiled model, a Mithril model of its own, or a function of output and target."""

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.loss_function import Call, LossFunction, one_number
from sleuth.adapters.mithril import arrays
from sleuth.adapters.mithril.given_model import is_logical
from sleuth.adapters.mithril.graph import Graph
from sleuth.adapters.mithril.graph_walk import walk
from sleuth.adapters.mithril.key_roles import Wiring
from sleuth.core.errors import Unsupported
from sleuth.core.subject import Parts

Evaluate = Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]]]


class Loss(ABC):
    """`ask` puts other outputs to the loss; None where it stands inside the model."""

    ask: Callable[[Any, Any], Any] | None = None

    @abstractmethod
    def value(self, batch: Parts) -> Any: ...

    @abstractmethod
    def gradients(self, batch: Parts) -> tuple[float, Mapping[str, Any]]: ...


class OutputLoss(Loss):
    """An output of the model itself, such as the final_cost of a TrainModel."""

    def __init__(self, wiring: Wiring, evaluate: Evaluate, exact: Callable[[Parts], Any] | None) -> None:
        """`exact`: the loss without the rounding of the compiled code, which brings some values to the backend's precision."""
        self._evaluate, self._exact = evaluate, exact
        self._key = str(wiring.loss)

    def value(self, batch: Parts) -> Any:
        return self._evaluate(batch)[0][self._key] if self._exact is None else self._exact(batch)

    def gradients(self, batch: Parts) -> tuple[float, Mapping[str, Any]]:
        if self._key == "final_cost":
            outputs, gradients = self._evaluate(batch, output_gradients=True)
        else:
            value = self.value(batch)
            one = arrays.like(np.ones(arrays.values(value).shape), value)
            outputs, gradients = self._evaluate(batch, output_gradients={self._key: one})
        return one_number(arrays.values(outputs[self._key])), gradients


class OwnLoss(Loss):
    """`loss(output, target)`: a number, or a number and its gradient by the output."""

    def __init__(self, loss: Any, name: str, forward: Callable[[Any], Any], evaluate: Evaluate, plain: bool) -> None:
        self._given = LossFunction(forward, loss)
        self._forward, self._evaluate = forward, evaluate
        self._name = name  # of the output that it judges
        self._plain = plain  # NumPy's arrays: differences can be taken
        self.ask = self._given.ask

    def value(self, batch: Parts) -> Any:
        return self._given.evaluate(batch).value

    def gradients(self, batch: Parts) -> tuple[float, Mapping[str, Any]]:
        made = self._given.evaluate(batch)
        if not self._plain and not isinstance(made.returned, tuple):
            raise Unsupported(
                "the loss gives no gradient by the output: put it into the model with TrainModel.add_loss, "
                "give a Mithril loss such as CrossEntropy(), or return (loss, gradient)"
            )
        value = one_number(arrays.values(made.value))
        by_output = self._given.output_gradient(made, batch)
        given = {self._name: by_output} if arrays.is_array(by_output) else dict(by_output)
        return value, self._evaluate(batch, output_gradients=given)[1]

    def location(self) -> Any:
        return self._given.location()


class CompiledLoss:
    """A Mithril loss, such as CrossEntropy(), compiled by itself: returns its mean and the gradient by the output."""

    def __init__(self, logical: Any, backend: Any) -> None:
        library = sys.modules["mithril"]
        models = sys.modules["mithril.models"]
        whole = models.Model()
        whole |= copy.deepcopy(logical).connect(input="input", target="target")
        whole += models.Mean().connect(output="loss")
        whole.expose_keys("loss")
        self.__name__ = type(logical).__name__
        self._physical = library.compile(whole, backend, data_keys={"target"}, trainable_keys={"input"}, jit=False)
        self._graph = Graph(self._physical)

    def __call__(self, output: Any, target: Any) -> tuple[Any, Any]:
        outputs, gradients = self._physical.evaluate({"input": output}, {"target": target}, output_gradients=True)
        value = outputs["loss"]
        if arrays.dtype(output) == "float64" != arrays.dtype(value):  # compiled code brings it to the backend's precision
            value = walk(self._graph, {"input": output, "target": target}).values[self._graph.outputs["loss"]]
        return value, gradients["input"]


def prepared(loss: Any, backend: Any) -> Any:
    """A Mithril loss becomes a function; anything else stays."""
    return CompiledLoss(loss, backend) if is_logical(loss) else loss


def plain_value(returned: Any) -> Any:
    return Call(returned).value
