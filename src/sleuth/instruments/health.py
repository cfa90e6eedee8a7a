"""The numbers in one tensor: are they sound?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.adapters import available
from sleuth.core.contract.adapter import Adapter
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import Statistics
from sleuth.core.words import kind_of
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result, new_figure

BINS = 60
# exp() of more is Inf in float32; in float16 values end at 65,504.
LARGE = 1e4
# A tensor of numbers below this vanishes in whatever it is added to.
TINY = 1e-7
# A ReLU leaves half of its outputs at zero; a layer with more than this is nearly silent.
MOSTLY = 0.95
# Standard deviations: single values this far out carry the mean and the gradient by themselves.
FAR = 50.0
HALF_LARGEST = 65504.0
# Below 2^-14 a float16 has fewer digits the smaller it is, and below 2^-24 it is zero.
HALF_SMALLEST = 2.0**-14


@dataclass(frozen=True, eq=False)
class Health(Result):
    """Mean, spread, skewness, kurtosis and range are those of the finite values."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    count: int
    nans: int
    infs: int
    zeros: int
    min: float
    max: float
    mean: float
    std: float
    skewness: float | None  # None: the values do not differ
    kurtosis: float | None  # beyond that of a normal distribution
    rms: float
    counts: np.ndarray  # of a histogram
    edges: np.ndarray
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.remarks

    @property
    def verdict(self) -> str:
        return "; ".join(self.remarks) if self.remarks else "sound: all values are finite and of ordinary size"

    def to_dict(self) -> dict[str, Any]:
        return {**plain(self), "ok": self.ok, "verdict": self.verdict}

    def plot(self) -> Any:
        figure = new_figure(6, 3)
        axes = figure.add_subplot()
        axes.stairs(self.counts, self.edges, fill=True, color="#4477aa")
        axes.set_yscale("symlog")
        axes.set_xlabel("value")
        axes.set_ylabel("how many")
        axes.set_title(f"{self.name}: {self.verdict}", fontsize=9, loc="left", wrap=True)
        return figure

    def __str__(self) -> str:
        return "\n".join((
            f"{self.name}  {self.shape}  {self.dtype}",
            f"  {self.count:,} values: {self.nans:,} NaN, {self.infs:,} Inf, {self.zeros:,} zero",
            f"  range [{self.min:.6g}, {self.max:.6g}], mean {self.mean:.6g}, std {self.std:.6g}, rms {self.rms:.6g}",
            f"  {'✓' if self.ok else '✗'} {self.verdict}",
        ))  # fmt: skip


def health(tensor: Any, name: str = "tensor") -> Health:
    """Counts of NaN, Inf and zero, range, moments, histogram, and a verdict in words. Any array of NumPy or a framework."""
    adapter, array = _array(tensor)
    values = adapter.values(array)
    if values.dtype.kind not in "fiub":
        raise UnusableInput(f"{name} holds {values.dtype}, not real numbers; of complex numbers look at .real and .imag.")
    known = Statistics.from_row(adapter.measure([array])[0])
    finite = values[np.isfinite(values)].astype(np.float64) if values.dtype.kind == "f" else values.astype(np.float64).ravel()
    skewness, kurtosis = _shape_of(finite, known)
    # A range beyond float64's own cannot be cut into bins.
    counts, edges = np.histogram(np.clip(finite, -1e300, 1e300), bins=BINS)
    result = Health(
        name=name,
        shape=tuple(int(n) for n in array.shape),
        dtype=adapter.dtype(array),
        count=known.count,
        nans=known.nans,
        infs=known.infs,
        zeros=known.zeros,
        min=known.min,
        max=known.max,
        mean=known.mean,
        std=known.std,
        skewness=skewness,
        kurtosis=kurtosis,
        rms=known.rms,
        counts=counts,
        edges=edges,
        remarks=tuple(_remarks(known, adapter.dtype(array))),
    )
    return result


def _array(tensor: Any) -> tuple[Adapter, Any]:
    from sleuth.adapters import adapter_named

    adapters = [*available()] or [adapter_named("numpy")]
    for adapter in adapters:
        if adapter.is_array(tensor):
            return adapter, tensor
    inside = [path for adapter in adapters for path, _ in leaves(tensor, adapter.is_array)]
    if inside:
        raise UnusableInput(f"give one of the arrays in it: {', '.join(dict.fromkeys(inside))}.")
    try:
        return adapter_named("numpy"), np.asarray(tensor, dtype=np.float64)
    except (TypeError, ValueError):
        raise UnusableInput(f"{kind_of(tensor)} is no array of numbers.") from None


def _shape_of(finite: np.ndarray, known: Statistics) -> tuple[float | None, float | None]:
    if not known.std or not np.isfinite(known.std):
        return None, None
    apart = (finite - known.mean) / known.std
    return float(np.mean(apart**3)), float(np.mean(apart**4) - 3)


def _remarks(known: Statistics, dtype: str) -> Iterator[str]:
    if not known.count:
        yield "it is empty"
        return
    if known.nans:
        yield f"{known.nans:,} of {known.count:,} values are NaN"
    if known.infs:
        yield f"{known.infs:,} of {known.count:,} values are Inf"
    if not known.finite or dtype == "bool":
        return
    largest = max(abs(known.min), abs(known.max))
    if known.zeros == known.count:
        yield "all values are zero"
    elif known.zeros > MOSTLY * known.count:
        yield f"{known.zeros / known.count:.1%} of the values are zero"
    elif known.finite > 1 and known.min == known.max:
        yield f"all values are {known.min:g}"
    if not dtype.startswith(("float", "bfloat")):
        return  # ids and counts may be of any size
    if largest > LARGE:
        limit = f"; float16 ends at {HALF_LARGEST:,.0f}" if dtype == "float16" or largest > HALF_LARGEST else ""
        yield f"values as large as {largest:.3g}: exp() and squares of them overflow{limit}"
    elif dtype == "float16" and 0 < largest < HALF_SMALLEST:
        yield f"no value is larger than {largest:.1e}: float16 loses digits below 6.1e-05 and all of them below 6e-08"
    elif 0 < largest < TINY:
        yield f"no value is larger than {largest:.1e}: sums with ordinary numbers swallow it"
    if known.std > 0 and (largest - abs(known.mean)) > FAR * known.std:
        yield f"single values lie {(largest - abs(known.mean)) / known.std:.0f} standard deviations from the mean"
