"""A run that was recorded, as arrays. Whoever keeps runs implements it; a report hands it on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sleuth.core.contract.scene import Scene
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Role
from sleuth.core.statistics import COLUMNS, EXPONENT_BINS


class Curve(NamedTuple):
    """NaN where what was seen is not finite; a step of which nothing was seen is not there."""

    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Table:
    """Statistics of the tensors of one role: `values[step, tensor, column]`. NaN where a tensor was not seen at a step."""

    steps: np.ndarray
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray

    def column(self, name: str) -> np.ndarray:
        """One statistic, steps × tensors; beside the stored ones also std, rms and norm."""
        if name in self.columns:
            return self.values[:, :, self.columns.index(name)]
        if name not in DERIVED:
            raise UnusableInput(f"there is no statistic {name!r}; choose one of {', '.join((*self.columns, *DERIVED))}.")
        count, mean, m2, nans, infs = (self.column(c) for c in ("count", "mean", "m2", "nans", "infs"))
        finite = count - nans - infs
        variance = np.divide(m2, finite, out=np.where(np.isnan(finite), np.nan, 0.0), where=finite > 0)
        rms = np.sqrt(mean**2 + variance)
        return {"std": np.sqrt(variance), "rms": rms, "norm": rms * np.sqrt(finite)}[name]

    def to_dataframe(self) -> Any:
        """A pandas.DataFrame: one row a step and tensor, one column a statistic."""
        pandas = _pandas()
        index = pandas.MultiIndex.from_product([self.steps, self.paths], names=["step", "tensor"])
        names = (*self.columns, "std", "rms", "norm")
        frame = pandas.DataFrame({name: self.column(name).ravel() for name in names}, index=index)
        return frame.dropna(subset=["count"])


DERIVED = ("std", "rms", "norm")


@dataclass(frozen=True)
class Grid:
    """One number of each of several layers over the steps: `values[step, layer]`. NaN where it was not seen."""

    steps: np.ndarray
    paths: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True)
class Histograms:
    """How many values of a tensor were of which size: `counts[step, tensor, bin]`, in the bins of core.statistics' exponents."""

    steps: np.ndarray
    paths: tuple[str, ...]
    counts: np.ndarray


class Recording(ABC):
    @abstractmethod
    def curves(self) -> dict[str, Curve]:
        """Over the steps: loss, lr, gradient_norm, seconds, …, and what was logged, validation with `val_` in front.

        A second optimiser's have `optimiser1.` in front, and so on. Only what was seen is there.
        """

    @abstractmethod
    def statistics(self, role: Role) -> Table: ...

    @abstractmethod
    def silent(self) -> Grid:
        """Of the layers whose units were looked at: the share of units that put out nothing but zeros."""

    @abstractmethod
    def histograms(self, role: Role, most: int) -> Histograms:
        """At no more than so many moments, evenly spread over those that were seen."""

    @abstractmethod
    def scenes(self) -> tuple[int, ...]:
        """The numbers of the steps that were kept whole."""

    @abstractmethod
    def scene(self, number: int) -> Scene: ...


def curves_as_dataframe(curves: Mapping[str, Curve]) -> Any:
    """One row a step, one column a curve."""
    pandas = _pandas()
    columns = {name: pandas.Series(curve.values, index=curve.steps) for name, curve in curves.items()}
    unique = {name: series[~series.index.duplicated(keep="last")] for name, series in columns.items()}
    return pandas.DataFrame(unique).rename_axis("step")


def empty_table() -> Table:
    return Table(np.zeros(0, dtype=np.int64), (), COLUMNS, np.zeros((0, 0, len(COLUMNS))))


def empty_grid() -> Grid:
    return Grid(np.zeros(0, dtype=np.int64), (), np.zeros((0, 0)))


def empty_histograms() -> Histograms:
    return Histograms(np.zeros(0, dtype=np.int64), (), np.zeros((0, 0, EXPONENT_BINS), dtype=np.int64))


def evenly(count: int, most: int) -> list[int]:
    """At most `most` places of `count`, the first and the last among them."""
    return sorted({int(place) for place in np.linspace(0, count - 1, min(count, most)).round()}) if count else []


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UnusableInput("to_dataframe() needs pandas: pip install pandas (or use the NumPy arrays).") from None
    return pandas
