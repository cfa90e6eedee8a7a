"""Reads training and validation data once, and notes what passes by."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.adapter import Adapter
from sleuth.core.errors import UnusableInput
from sleuth.core.location import Location
from sleuth.core.observation import ArrayFacts, Batch, Failure, Observation, Split
from sleuth.core.stage import Stage
from sleuth.core.statistics import Statistics
from sleuth.core.subject import Parts, take_apart
from sleuth.core.tree import leaves
from sleuth.probes.fingerprint import fingerprints
from sleuth.probes.probe import Lab, Readings, probe
from sleuth.probes.sources import open_source

# Experiments draw their batches from these; more would only cost memory.
KEPT_BATCHES = 64
KEPT_BYTES = 256 * 1024**2
# Statistics per batch beyond this many batches tell nothing new; fingerprints and labels go on.
MEASURED_BATCHES = 256
MOST_FEATURES = 4096
MOST_CLASSES = 10_000


@probe(title="Reading the data", stage=Stage.DATA, rank=0, emits=(Batch,), share=0.2)
def reading(lab: Lab) -> Iterator[Observation]:
    yield from _read(lab, lab.subject.train, lab.train)
    if lab.subject.validation is not None:
        lab.validation = Readings(Split.VALIDATION)
        yield from _read(lab, lab.subject.validation, lab.validation)


def _read(lab: Lab, given: Any, readings: Readings) -> Iterator[Observation]:
    name = readings.split.value
    source = open_source(given, lab.adapter, name)
    readings.order_is_ours = source.order_is_ours
    kept = 0
    index = -1
    try:
        for index, raw in enumerate(source.batches):
            parts = take_apart(raw, lab.subject.split)
            facts = describe_batch(parts, readings.split, index, lab.adapter, measured=index < MEASURED_BATCHES)
            kept = _keep(parts, readings, kept, lab.adapter)
            _note(parts, readings, lab.adapter)
            readings.samples += facts.size
            if index < MEASURED_BATCHES:
                yield facts
            if lab.time_is_up():
                lab.notes.append(
                    f"{name}: read {readings.samples} samples in {index + 1} batches, then the time for reading was used up"
                )
                break
        else:
            readings.complete = True
    except Ragged as error:
        yield Failure(
            "data",
            "Ragged",
            f"batch {index} of {name}: {error}",
            kind="shape",
            advice="give every sample its target: check the collate function",
        )
    except UnusableInput:
        raise
    except Exception as error:
        yield Failure("data", type(error).__name__, f"batch {index + 1} of {name}: {error}", location=_last_line(error))
    if index < 0 and not readings.batches:
        _refuse_empty(name, given)


class Ragged(ValueError):
    """Inputs and target of one batch differ in their number of samples."""


def _refuse_empty(name: str, given: Any) -> None:
    raise UnusableInput(
        f"{name} ({type(given).__name__}) yielded no batch. Check that the data set is not empty and that drop_last=True "
        "does not drop its only batch."
    )


def _last_line(error: Exception) -> Location | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    return Location(trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def _keep(parts: Parts, readings: Readings, kept: int, adapter: Adapter) -> int:
    size = sum(int(getattr(a, "nbytes", 0)) for _, a in leaves(parts.raw, adapter.is_array))
    if len(readings.batches) < KEPT_BATCHES and (kept + size <= KEPT_BYTES or not readings.batches):
        readings.batches.append(parts)
        return kept + size
    return kept


def _note(parts: Parts, readings: Readings, adapter: Adapter) -> None:
    arrays = [adapter.values(a) for _, a in leaves(parts.inputs, adapter.is_array)]
    arrays = [a for a in arrays if a.ndim]
    if arrays:
        exact, rounded = fingerprints(arrays)
        readings.exact.append(exact)
        readings.rounded.append(rounded)
    labels = class_labels(parts.target, adapter)
    if labels is not None:
        readings.labels.append(labels)


def describe_batch(parts: Parts, split: Split, index: int, adapter: Adapter, measured: bool = True) -> Batch:
    named = [(path, array, adapter.values(array)) for path, array in leaves(parts.inputs, adapter.is_array)]
    if not named:
        raise UnusableInput(
            f"batch {index} of {split.value} holds no arrays but a {type(parts.raw).__name__}; give tensors or NumPy arrays, "
            "or say with split= how a batch becomes (inputs, target)."
        )
    target = next(((p, a, adapter.values(a)) for p, a in leaves(parts.target, adapter.is_array)), None)
    size = named[0][2].shape[0] if named[0][2].ndim else 1
    if target is not None and target[2].ndim and named[0][2].ndim and target[2].shape[0] != size:
        raise Ragged(f"the inputs have {size} samples, the target {target[2].shape[0]}")
    if not measured:
        return Batch(split, index, size, (), None)
    main = next((v for _, _, v in named if v.dtype.kind == "f" or v.dtype == np.uint8), named[0][2])
    features, axis = _features(main, adapter)
    labels = class_labels(parts.target, adapter)
    return Batch(
        split=split,
        index=index,
        size=size,
        inputs=tuple(facts(path or "input", array, values, adapter) for path, array, values in named),
        target=None if target is None else facts("target", target[1], target[2], adapter),
        features=features,
        feature_axis=axis,
        labels=None if labels is None else dict(zip(*(v.tolist() for v in np.unique(labels, return_counts=True)), strict=True)),
        bad_inputs=_bad([v for _, _, v in named]),
        bad_targets=_bad([target[2]] if target is not None else []),
        blank_inputs=_blank(main),
    )


def facts(path: str, array: Any, values: np.ndarray, adapter: Adapter) -> ArrayFacts:
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    whole = float(np.mean(finite == np.floor(finite))) if finite.size and values.dtype.kind != "b" else float(bool(finite.size))
    statistics = Statistics.from_row(adapter.measure([array])[0])
    return ArrayFacts(path, tuple(values.shape), adapter.dtype(array), statistics, whole, adapter.device(array))


def class_labels(target: Any, adapter: Adapter) -> np.ndarray | None:
    """One class per sample: whole numbers of an integer type, or zeros and ones, in one column."""
    arrays = [a for _, a in leaves(target, adapter.is_array)]
    if len(arrays) != 1:
        return None
    values = adapter.values(arrays[0])
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or not values.size:
        return None
    if values.dtype.kind == "f" and not np.isin(values, (0, 1)).all():
        return None
    labels = values.astype(np.int64)
    return labels if len(np.unique(labels)) <= MOST_CLASSES else None


def _features(values: np.ndarray, adapter: Adapter) -> tuple[np.ndarray | None, str]:
    """One row of statistics per column of a table or channel of an image."""
    if values.ndim < 2 or values.size == 0:
        return None, ""
    if values.ndim == 2:
        axis, word = 1, "column"
    elif values.ndim == 3:
        axis, word = 2, "column"
    else:
        axis, word = (1 if values.shape[1] <= values.shape[-1] else values.ndim - 1), "channel"
    if values.shape[axis] > MOST_FEATURES:
        return None, ""
    columns = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    return adapter.measure(list(columns)), word


def _bad(arrays: list[np.ndarray]) -> tuple[int, ...]:
    rows: set[int] = set()
    for values in arrays:
        if values.dtype.kind == "f" and values.ndim:
            bad = ~np.isfinite(values.reshape(values.shape[0], -1)).all(axis=1)
            rows |= set(np.flatnonzero(bad).tolist())
    return tuple(sorted(rows)[:100])


def _blank(values: np.ndarray) -> int:
    if values.ndim < 2 or values.shape[0] == 0 or values[0].size < 2:
        return 0
    flat = values.reshape(values.shape[0], -1)
    return int(np.count_nonzero((flat == flat[:, :1]).all(axis=1)))
