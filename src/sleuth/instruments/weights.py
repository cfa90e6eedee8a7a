"""The weights of a model: their statistics, their distributions, and what looks wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter, Describes
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Parameter
from sleuth.core.statistics import Statistics
from sleuth.instruments.laboratory import Training, opened
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Viewed

# Below this a weight passes nothing on.
TINY = 1e-6
# A layer of which so many are tiny was pruned, or has died.
MANY_TINY = 0.5
# A spread below this is none.
NO_SPREAD = 1e-6
# Above this one weight outweighs everything else that a unit hears.
EXTREME = 10.0
BINS = 50
LEAST_BINS = 10
# Scales of normalisation are positive and alike by design.
SCALES = ("norm", "batchnorm")
# Fewer of one sign may be chance.
LEAST_SIGNED = 8


@dataclass(frozen=True)
class ParameterWeights:
    path: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    mean: float
    std: float
    min: float
    max: float
    norm: float
    zero_share: float
    tiny_share: float  # zeros included
    nans: int
    infs: int
    counts: np.ndarray  # of the finite values, between edges
    edges: np.ndarray
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeightReport(Viewed):
    parameters: tuple[ParameterWeights, ...]  # in the order of the model; what is tied stands once
    notes: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{p.path}: {w}" for p in self.parameters for w in p.warnings)

    def __getitem__(self, path: str) -> ParameterWeights:
        found = next((p for p in self.parameters if p.path == path), None)
        if found is None:
            raise KeyError(path)
        return found

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def weights(model: Any, pattern: str = "*", *, tiny: float = TINY, extreme: float = EXTREME) -> WeightReport:
    """Statistics and distribution of every parameter whose name fits `pattern`, such as "encoder.*.weight"."""
    with opened(Training(model), batches=0) as lab:
        if not isinstance(lab.adapter, Describes):
            raise UnusableInput(f"models of {lab.adapter.name} cannot be described yet.")
        every = [p for p in lab.adapter.architecture(lab.subject).parameters if p.tied_to is None]
        wanted = [p for p in every if fnmatchcase(p.path, pattern)]
        if not wanted:
            raise UnusableInput(f"no parameter fits {pattern!r}; there are: {', '.join(p.path for p in every[:8]) or 'none'}.")
        found = tuple(_measured(p, lab.adapter, lab.bench.parameter(p.path), tiny, extreme) for p in wanted)
        return WeightReport(found, tuple(lab.notes))


def _measured(parameter: Parameter, adapter: Adapter, array: Any, tiny: float, extreme: float) -> ParameterWeights:
    values = adapter.values(array).ravel()
    known = Statistics.from_row(adapter.measure([array])[0])
    finite = values[np.isfinite(values)].astype(np.float64)
    counts, edges = np.histogram(finite, bins=min(BINS, max(LEAST_BINS, int(np.sqrt(finite.size)))))
    tiny_share = float(np.mean(np.abs(values) < tiny)) if values.size else 0.0
    return ParameterWeights(
        path=parameter.path,
        shape=parameter.shape,
        dtype=parameter.dtype,
        trainable=parameter.trainable,
        mean=known.mean,
        std=known.std,
        min=known.min,
        max=known.max,
        norm=known.norm,
        zero_share=known.zero_share,
        tiny_share=tiny_share,
        nans=known.nans,
        infs=known.infs,
        counts=counts,
        edges=edges,
        warnings=tuple(_warnings(parameter, known, tiny_share, extreme)),
    )


def _warnings(parameter: Parameter, known: Statistics, tiny_share: float, extreme: float) -> Iterator[str]:
    if not known.all_finite:
        yield f"{known.nans} NaN and {known.infs} Inf among {known.count:,} values"
    if max(abs(known.min), abs(known.max)) > extreme:
        yield f"values up to {max(known.max, known.min, key=abs):.3g}: activations may explode"
    # A bias starts at zero, and a scale at one.
    if len(parameter.shape) < 2 or parameter.family in SCALES or known.count < 2:
        return
    if known.std < NO_SPREAD:
        yield f"all values are {known.mean:.3g}: units that start alike stay alike; use nn.init.kaiming_normal_"
    elif tiny_share > MANY_TINY:
        yield f"{tiny_share:.0%} of the values are (almost) zero"
    if known.std >= NO_SPREAD and known.count >= LEAST_SIGNED and (known.min >= 0 or known.max <= 0):
        yield f"no value is {'negative' if known.min >= 0 else 'positive'}, which is unusual for weights"
