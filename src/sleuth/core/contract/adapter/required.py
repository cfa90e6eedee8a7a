"""What every adapter must do, and telling what a training is made of."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from sleuth.core.observation import Architecture, Settings
from sleuth.core.subject import Subject


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
