"""Data sets and loaders that only a framework knows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Rows:
    """A data set whose samples can be read by position, in its own order, however a loader shuffles it."""

    count: int
    take: Callable[[np.ndarray], Any]  # positions → one batch of these samples
    bulk: bool = False  # thousands are taken as quickly as one: they stand in arrays
    whole: bool = True  # False: the source draws some of these samples and leaves others out


class Orders(ABC):
    @abstractmethod
    def rows(self, source: Any) -> Rows | None:
        """The data set behind a source; None where samples come only as the source gives them."""


@dataclass(frozen=True)
class Crew:
    """The worker processes of a loader. They are tried as a crew of their own: the loader and its workers are left alone."""

    count: int
    samples: int  # of the data set; 0: a stream
    stream: bool  # each worker reads a stream of its own; otherwise they are told positions
    persistent: bool  # they live on from epoch to epoch
    # (positions of each batch, or how many batches of a stream; workers; epochs; seconds) → batches by epoch. Workers take
    # turns: the first batch is the first worker's. None of them is left when this returns or raises.
    read: Callable[[Sequence[Sequence[int]] | int, int, int, float], list[list[Any]]]


class Employs(ABC):
    @abstractmethod
    def crew(self, source: Any) -> Crew | None:
        """None where a source is not a loader of this framework."""
