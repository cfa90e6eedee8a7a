"""The protocol between sleuth and a framework.

Capabilities are separate abstract classes: what an adapter does not inherit turns into *not examined*, and a
misspelt method fails at construction. docs/design.md shows how each framework fills them in.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.subject import Parts, Subject
from sleuth.core.trial import Connection

Emit = Callable[[Observation], None]


class Adapter(ABC):
    """What every adapter must do. An array is whatever the framework computes with."""

    name: ClassVar[str]

    @abstractmethod
    def claims(self, thing: Any) -> bool:
        """Is this model mine? Never imports a framework to find out."""

    @abstractmethod
    def is_array(self, thing: Any) -> bool: ...

    @abstractmethod
    def values(self, array: Any) -> np.ndarray:
        """The values, in host memory; dtypes that NumPy lacks are widened to float32."""

    @abstractmethod
    def like(self, values: np.ndarray, array: Any) -> Any:
        """An array of the framework with these values and the dtype and device of `array`."""

    @abstractmethod
    def dtype(self, array: Any) -> str:
        """Such as float32, bfloat16, int64."""

    @abstractmethod
    def device(self, array: Any) -> str: ...

    @abstractmethod
    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        """Statistics of many arrays, one row each (core.statistics), with one device synchronisation."""

    @abstractmethod
    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        """Batches of a data source that only this framework knows (a Dataset); None for any other."""

    @abstractmethod
    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        """On every way out, all random states, gradients, modes and loader generators are as they were."""


class Describes(ABC):
    @abstractmethod
    def architecture(self, subject: Subject) -> Architecture: ...

    @abstractmethod
    def settings(self, subject: Subject) -> Settings: ...


@dataclass(frozen=True)
class Gradients:
    loss: float
    by_path: Mapping[str, Any]  # trainable parameter → array, or None where the loss does not reach it


class Bench(ABC):
    """One joint copy of model, loss and optimiser to experiment on: nothing done here reaches the user's objects."""

    note: str | None = None  # what the report must say, such as "the model could not be copied"

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """The trainable parameters, in the order of the model."""

    @abstractmethod
    def parameter(self, path: str) -> Any:
        """The parameter as it is now."""

    @abstractmethod
    def write(self, path: str, values: np.ndarray) -> None: ...

    @abstractmethod
    def snapshot(self) -> Any:
        """Weights, buffers, optimiser state and random state."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None: ...

    @abstractmethod
    def set_training(self, on: bool) -> None:
        """Training mode as the user had it (frozen parts stay in eval), or everything in eval mode."""

    @abstractmethod
    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        """One forward and loss, listened to: Frame of activations, Units, LossCall; a Failure when it raises."""

    @abstractmethod
    def forward(self, inputs: Any) -> Any:
        """The model's output, without gradients."""

    @abstractmethod
    def loss(self, batch: Parts) -> float:
        """Without gradients."""

    @abstractmethod
    def gradients(self, batch: Parts) -> Gradients: ...

    @abstractmethod
    def step(self, batch: Parts) -> float:
        """Forward, loss, backward and one optimiser step; the loss before it."""

    @abstractmethod
    def apply(self, batch: Parts) -> None:
        """One optimiser step with the gradients that `gradients(batch)` has just computed."""

    @property
    @abstractmethod
    def lr(self) -> float | None: ...

    @abstractmethod
    def set_lr(self, lr: float) -> None:
        """Rates of several groups keep their proportions."""

    @abstractmethod
    def double(self) -> "Bench":
        """A copy that computes in float64; raises Unsupported where that cannot be had."""

    @abstractmethod
    def explain_failure(self, error: Exception, phase: str) -> Observation:
        """The `Failure` behind an exception: layer, expected, got, the user's line, advice."""


class Steps(ABC):
    @abstractmethod
    def bench(self, subject: Subject) -> AbstractContextManager[Bench]: ...


@dataclass(frozen=True)
class Rows:
    """A data set whose samples can be read by position, in its own order, however a loader shuffles it."""

    count: int
    take: Callable[[np.ndarray], Any]  # positions → one batch of these samples


class Orders(ABC):
    @abstractmethod
    def rows(self, source: Any) -> Rows | None:
        """The data set behind a source; None where samples come only as the source gives them."""


class Watches(ABC):
    @abstractmethod
    def watch(self, subject: Subject, emit: Emit) -> AbstractContextManager[None]:
        """Listen to the user's own loop; every hook is gone on every way out."""


class Traces(ABC):
    @abstractmethod
    def connection(self, bench: Bench, batch: Parts) -> Connection:
        """One step, op by op: which parameters the loss reaches and where the graph is cut."""

    @abstractmethod
    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        """One step, op by op: where the first NaN or Inf is born; None when all is finite."""


class Inspects(ABC):
    @abstractmethod
    def flops(self, subject: Subject, inputs: Any) -> Mapping[str, int]:
        """Floating-point operations of one forward, by layer path."""
