"""Looking at a model for its own sake."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from sleuth.core.contract.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route


class Inspects(ABC):
    """Looking at a model for its own sake. Nothing of the user's is changed: work is done on a copy, without training mode
    unless `as_is`. `inputs` is what the model is called with; a tuple is several arguments, a mapping may be keywords."""

    @abstractmethod
    def parts(self, model: Any) -> tuple[Part, ...]:
        """The tree in the order of definition, each part after the one that holds it."""

    @abstractmethod
    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        """An array to try the model with, where its parameters are; random numbers of its own, or zeros for whole numbers."""

    @abstractmethod
    def looking(self, source: Any) -> AbstractContextManager[None]:
        """Around a look into a data source: its generators, its workers and all random states are as before on every way out."""

    @abstractmethod
    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        """One forward pass, visit by visit. What the user's code raises becomes `failure`. `time`: several are measured."""


class Routes(ABC):
    """The graph of a model."""

    @abstractmethod
    def route(self, model: Any, inputs: Any) -> Route:
        """One forward pass, operation by operation. Raises UnusableInput where it fails."""


class Shows(ABC):
    """Filters and feature maps: what pictures need."""

    @abstractmethod
    def kernels(self, model: Any, layer: str | None) -> Kernels:
        """Of the named convolution, or of the first."""

    @abstractmethod
    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        """What these layers put out, in the order of calls; without names, every convolution's."""


class Credits(ABC):
    """Which part of an input speaks for an answer."""

    @abstractmethod
    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        """Grad-CAM of the named layer, or of the last that has a map; without a target, of the class with the highest score."""


class Attends(ABC):
    """Attention inside a model."""

    @abstractmethod
    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        """Every attention of one forward pass, in the order of calls."""
