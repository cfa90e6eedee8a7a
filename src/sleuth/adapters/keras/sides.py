"""What depends on the backend: gradients, and steps of the optimiser."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
from keras.src.backend.common import dtypes

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.pass_listener import Hearing
from sleuth.core.contract.workload import Hear, Heard
from sleuth.core.location import Location
from sleuth.core.subject import Parts
from sleuth.core.trial import Connection

if TYPE_CHECKING:
    from sleuth.adapters.keras.bench import KerasBench

Compute = Callable[[Parts], Any]  # the loss of a batch, in the backend's own arrays
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Meeting:
    """Where output and target of a loss meet, and become larger together than either was."""

    output: Shape
    target: Shape
    shape: Shape  # of both together
    location: Location | None


@contextmanager
def without_warnings() -> Iterator[None]:
    """What Keras warns about in the user's code is what the checks judge; hundreds of steps would only repeat it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Side(ABC):
    def __init__(self, model: Any) -> None:
        self.model = model

    @abstractmethod
    def without_gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        """`compute(given)`; states such as running statistics move on. `key`: what else the computation depends on."""

    @abstractmethod
    def gradients(self, compute: Callable[[Any], Any], given: Any, key: Any) -> tuple[Any, list[Any]]:
        """The loss and its gradient by each trainable variable; None where the loss does not reach it."""

    @abstractmethod
    def apply(self, optimiser: Any, gradients: Sequence[Any]) -> None: ...

    def listened(self, hearing: Hearing, compute: Callable[[Any], Any], given: Any, key: Any) -> Any:
        """`compute(given)`, while `hearing` listens."""
        with hearing.listening():
            return compute(given)

    @abstractmethod
    def meeting(self, compute: Callable[[Any, Any], Any], output: Any, target: Any) -> Meeting | None:
        """Where the loss `compute(output, target)` lets one grow by the other, if it does."""

    @abstractmethod
    def connection(self, bench: "KerasBench", batch: Parts) -> Connection:
        """Where the graph between the variables and the loss is cut."""

    def followed(self, compute: Callable[[Any], None], given: Any) -> None:
        """`compute(given)` for those who listen meanwhile to what feeds what: values need not be there."""
        with self.unrecorded():
            compute(given)

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """While nothing is differentiated."""
        yield

    @abstractmethod
    def gradient_by(self, compute: Callable[[Any], Any], given: Any) -> Any:
        """Of one number that `compute` makes of this array. Variables stay as they are."""

    @contextmanager
    def step_by_step(self) -> Iterator[None]:
        """While every value is there for Python to look at."""
        yield

    @abstractmethod
    def told(self, heard: Heard, array: Any, value: Hear, gradient: Hear | None) -> Any:
        """The same array: its values are told now, and its gradient when that comes."""

    @contextmanager
    def wide(self) -> Iterator[None]:
        """While float64 is computed with: also what losses and layers make for themselves."""
        before, narrowed = keras.config.floatx(), dtypes.BIT64_TO_BIT32_DTYPE["float64"]
        keras.config.set_floatx("float64")
        # Keras narrows what comes of float64, so that backends agree.
        dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"
        try:
            yield
        finally:
            keras.config.set_floatx(before)
            dtypes.BIT64_TO_BIT32_DTYPE["float64"] = narrowed


def side_of(model: Any) -> Side:
    backend.require_known()
    if backend.name() == "torch":
        from sleuth.adapters.keras.torch_side import TorchSide

        return TorchSide(model)
    from sleuth.adapters.keras.jax_side import JaxSide

    return JaxSide(model)


def other_variables(model: Any) -> list[Any]:
    """What a pass may change beside the weights that are trained: running statistics, states of random generators, metrics."""
    free = {id(v) for v in model.trainable_variables}
    return [v for v in model.variables if id(v) not in free]


def assign(variables: Sequence[keras.Variable], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
