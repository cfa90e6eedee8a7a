"""What there is to say about one batch: shapes, dtypes, statistics, labels, samples that are not finite."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import ArrayFacts, Batch, Split
from sleuth.core.reading.columns import column_statistics
from sleuth.core.runtime.tree import leaves
from sleuth.core.statistics import Statistics
from sleuth.core.subject import Parts
from sleuth.core.words import kind_of

# Wider tables would make every batch a table of its own; single columns of them are not judged.
MOST_FEATURES = 4096
MOST_CLASSES = 10_000
# Larger batches are measured on evenly spread samples: so many values settle a mean and a range.
MEASURED_VALUES = 500_000
# Samples that are not finite are named up to here.
MOST_NAMED = 100
# Fewer equal values in a row are chance: (1, 1) is a sample of two yes-no columns, not a blank one.
LEAST_BLANK = 16
# A signal such as audio comes as (samples, channels, length): few channels, many points in time.
MOST_SIGNAL_CHANNELS = 4
LEAST_SIGNAL_LENGTH = 16


@dataclass(frozen=True)
class Named:
    """One array of numbers at its place in a batch."""

    path: str
    array: Any
    values: np.ndarray

    @property
    def measured(self) -> np.ndarray:
        """What statistics are taken of: complex numbers count by their magnitude."""
        return np.abs(self.values) if self.values.dtype.kind == "c" else self.values


def numbers(tree: Any, adapter: Adapter) -> list[Named]:
    """Every array of numbers; arrays of texts, dates or objects ride along in batches and are passed over."""
    return list(_numbers(tree, adapter))


def _numbers(tree: Any, adapter: Adapter) -> Iterator[Named]:
    for path, array in leaves(tree, adapter.is_array):
        values = adapter.values(array)
        if values.dtype.kind in "biufc":
            yield Named(path, array, values)


@dataclass(frozen=True)
class Contents:
    """The arrays of one batch, brought into host memory once."""

    parts: Parts
    inputs: list[Named]
    targets: list[Named]

    @property
    def size(self) -> int:
        return next((n.values.shape[0] for n in self.inputs if n.values.ndim), 1)

    @property
    def is_finite(self) -> bool:
        return not _bad(self.inputs) and not _bad(self.targets)


def contents(parts: Parts, adapter: Adapter) -> Contents:
    return Contents(parts, numbers(parts.inputs, adapter), numbers(parts.target, adapter))


def describe_batch(batch: Contents, split: Split, index: int, adapter: Adapter) -> Batch:
    inputs, targets = batch.inputs, batch.targets
    if not inputs:
        raise UnusableInput(
            f"batch {index} of {split.value} holds no arrays of numbers but {kind_of(batch.parts.raw)}; give tensors or "
            "NumPy arrays (all samples of a batch in one array), or say with split= how a batch becomes (inputs, target)."
        )
    main = next((n.values for n in inputs if n.values.ndim and (n.values.dtype.kind == "f" or n.values.dtype == np.uint8)), None)
    bad, bad_targets = _bad(inputs), _bad(targets)
    features, axis = (None, "") if main is None else _features(_sampled(main, bad))
    labels = labels_of(targets)
    return Batch(
        split=split,
        index=index,
        size=batch.size,
        inputs=tuple(facts(n.path or "input", n.array, _sampled(n.measured, bad), adapter) for n in inputs),
        target=facts("target", targets[0].array, _sampled(targets[0].measured, bad_targets), adapter) if targets else None,
        features=features,
        feature_axis=axis,
        labels=None if labels is None else _counts(labels),
        whole_targets=_whole(targets),
        bad_inputs=bad,
        bad_targets=bad_targets,
        blank_inputs=0 if main is None else _blank(main),
    )


def facts(path: str, array: Any, values: np.ndarray, adapter: Adapter) -> ArrayFacts:
    """`values`: those of the array that are to be measured."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and values.dtype.kind == "f" else float(bool(finite.size))
    statistics = Statistics.from_row(adapter.measure([values])[0])
    return ArrayFacts(path, tuple(array.shape), adapter.dtype(array), statistics, whole, adapter.device(array))


def class_labels(target: Any, adapter: Adapter) -> np.ndarray | None:
    return labels_of(numbers(target, adapter))


def labels_of(targets: list[Named]) -> np.ndarray | None:
    """One class per sample: whole numbers of an integer type, or zeros and ones, in one column."""
    if len(targets) != 1:
        return None
    values = targets[0].values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or not values.size or values.dtype.kind == "c":
        return None
    if values.dtype.kind == "f" and not np.isin(values, (0, 1)).all():
        return None
    labels = values.astype(np.int64)
    return labels if len(np.unique(labels)) <= MOST_CLASSES else None


def _whole(targets: list[Named]) -> dict[int, int] | None:
    """A float target too: class indices that were cast to float are still class indices."""
    if len(targets) != 1 or targets[0].values.dtype.kind not in "iuf":
        return None
    values = targets[0].values
    column = values.reshape(-1) if values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1) else None
    if column is None or not column.size or not np.isfinite(column).all() or (column != np.floor(column)).any():
        return None
    counts = _counts(column.astype(np.int64))
    return counts if len(counts) <= MOST_CLASSES else None


def _counts(labels: np.ndarray) -> dict[int, int]:
    values, counts = np.unique(labels, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _sampled(values: np.ndarray, bad: tuple[int, ...]) -> np.ndarray:
    """All of a small array; of a large one evenly spread samples, and those that are not finite."""
    if values.ndim == 0 or values.size <= MEASURED_VALUES:
        return values
    rows = set(range(0, values.shape[0], -(-values.size // MEASURED_VALUES)))
    return values[sorted(rows | {b for b in bad if b < values.shape[0]})]


def _features(values: np.ndarray) -> tuple[np.ndarray | None, str]:
    """One row of statistics per column of a table or channel of an image."""
    if values.ndim < 2 or values.size == 0:
        return None, ""
    axis, word = values.ndim - 1, "column"
    if values.ndim > 3:
        axis, word = (1 if values.shape[1] <= values.shape[-1] else values.ndim - 1), "channel"
    elif values.ndim == 3 and values.shape[1] <= MOST_SIGNAL_CHANNELS and values.shape[2] >= LEAST_SIGNAL_LENGTH:
        axis, word = 1, "channel"
    if values.shape[axis] > MOST_FEATURES:
        return None, ""
    return column_statistics(np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)), word


def _bad(arrays: list[Named]) -> tuple[int, ...]:
    rows: set[int] = set()
    for values in (a.values for a in arrays):
        if values.dtype.kind not in "fc" or np.isfinite(values).all():
            continue
        bad = ~np.isfinite(values.reshape(values.shape[0] if values.ndim else 1, -1)).all(axis=1)
        rows |= set(np.flatnonzero(bad).tolist())
    return tuple(sorted(rows)[:MOST_NAMED])


def _blank(values: np.ndarray) -> int:
    if values.ndim < 2 or values.shape[0] == 0 or values[0].size < LEAST_BLANK:
        return 0
    flat = values.reshape(values.shape[0], -1)
    return int(np.count_nonzero((flat == flat[:, :1]).all(axis=1)))
