"""Experiments on a copy of a training."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.workload import Cost, Hear, LayerWork, Wanted
from sleuth.core.observation import Observation
from sleuth.core.subject import Parts, Subject, Usage


@dataclass(frozen=True)
class Gradients:
    loss: float
    by_path: Mapping[str, Any]  # trainable parameter → array, or None where the loss does not reach it


class Bench(ABC):
    """One joint copy of model, loss and optimiser to experiment on: nothing done here reaches the user's objects."""

    note: str | None = None  # what the report must say, such as "the model could not be copied"
    repeats_dice: bool = False  # each call draws the same random numbers as the one before

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
    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        """What the model returned at each of its calls in one forward and loss, without gradients: also inside `step`."""

    @abstractmethod
    def usage(self, batch: Parts) -> Usage | None:
        """What `step` does with the arrays of the raw batch; None where that cannot be followed."""

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

    @property
    @abstractmethod
    def weight_decay(self) -> float | None:
        """The largest that the user's optimiser applies to a group; None where it is not known."""

    @abstractmethod
    def scale_weight_decay(self, factor: float) -> None:
        """Every group's weight decay times this; a snapshot brings it back."""

    @abstractmethod
    def double(self) -> "Bench":
        """A copy that computes in float64; raises Unsupported where that cannot be had."""

    @abstractmethod
    def explain_failure(self, error: Exception, phase: str) -> Observation:
        """The `Failure` behind an exception: layer, expected, got, the user's line, advice."""


class Steps(ABC):
    @abstractmethod
    def bench(self, subject: Subject) -> AbstractContextManager[Bench]: ...


class Substitutes(ABC):
    @abstractmethod
    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        """The loss of a batch, without gradients, where each thing that the model returns goes through `change` first."""


@dataclass(frozen=True)
class Compared:
    """What one call of a loss function was given, as arrays of the framework, and what it leaves out."""

    name: str
    output: Any
    target: Any
    ignored: int | None = None  # the class that does not count


class Compares(ABC):
    @abstractmethod
    def compared(self, bench: Bench, batch: Parts) -> tuple[Compared, ...]:
        """Of each loss function that was called while the loss of the batch was computed, without gradients: also inside the
        model. Functions that the user wrote out are not heard."""


class LayerValues(ABC):
    """What happens inside a model while a bench runs it."""

    @abstractmethod
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        """Those that the user's own backward has left: trainable parameter → array, or None."""

    @abstractmethod
    def layer_values(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> AbstractContextManager[None]:
        """While it is open, `value` is given what the wanted layers put out, `gradient` the loss's gradient by that, if there is
        a backward. Operations beside activations are heard where they are asked for."""


class CheckpointState(ABC):
    """What a bench holds beside its trainable parameters."""

    @abstractmethod
    def model_and_optimiser(self, bench: Bench) -> tuple[Any, Any]:
        """The model and the optimiser that the bench trains, as the user's own code that saves and loads would be given them.
        None for an optimiser that is not there. Raises Unsupported where they are no objects that can be changed in place."""

    @abstractmethod
    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        """Arrays that the model keeps without learning them, such as running means: path → array as it is now."""

    @abstractmethod
    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None: ...


class Profiles(ABC):
    @abstractmethod
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        """Takes so many training steps. The caller restores the bench."""

    @abstractmethod
    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        """Of the forward pass and loss alone, without a profiler: the quickest of the repeats speaks. 0 repeats: only what can be
        counted is asked for, and times may be left out."""
