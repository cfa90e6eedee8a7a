"""In which order samples come: label runs against chance, and whether a second epoch repeats the first."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from sleuth.core.observation import Observation, Split
from sleuth.core.reading.batch_facts import contents, numbers
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.core.trial import Order
from sleuth.probes.data.reading import note
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.samples import data_rows
from sleuth.probes.lab.sources import open_source

# Two shuffled epochs that agree in this many batches do not occur by chance.
COMPARED_BATCHES = 3
# Equal label sequences speak for equal order only where chance would need e^20 tries.
LEAST_INFORMATION = 20.0


@probe(title="Looking at the order of the samples", stage=Stage.DATA, rank=10, emits=(Order,), share=0.05)
def order(lab: Lab) -> Iterator[Observation]:
    read = lab.train
    labels, real = _labels(lab)
    runs, expected, std = count_runs(np.concatenate(labels)) if labels else (0, 0.0, 0.0)
    yield Order(
        samples=sum(map(len, labels)),
        runs=runs,
        expected_runs=expected,
        runs_std=std,
        single_class_batches=sum(len(np.unique(batch)) == 1 for batch in labels),
        batches=len(labels),
        # A stream without an end is begun once: what a second beginning would bring is nobody's concern.
        epochs_in_same_order=None if read.order_is_ours or _is_unending(lab) else _repeats(lab),
        order_is_ours=read.order_is_ours,
        real_target=real,
        complete=read.complete,
        batches_fixed=isinstance(lab.subject.train, Sequence),
    )


def count_runs(labels: np.ndarray) -> tuple[int, float, float]:
    """(runs, their mean, their standard deviation) over all orders of these labels (Mood 1940, for any number of classes)."""
    _, counts = np.unique(labels, return_counts=True)
    n = float(len(labels))
    squares, cubes = float(np.sum(counts.astype(float) ** 2)), float(np.sum(counts.astype(float) ** 3))
    runs = int(np.count_nonzero(labels[1:] != labels[:-1])) + 1
    expected = n + 1 - squares / n
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1)) if n > 1 else 0.0
    return runs, expected, float(np.sqrt(max(variance, 0.0)))


def _labels(lab: Lab) -> tuple[list[np.ndarray], bool]:
    """Per batch, in the order read; a single column of real targets is parted at its mean."""
    if lab.train.labels:
        complete = sum(map(len, lab.train.labels)) == lab.train.samples
        return (lab.train.labels, False) if complete else ([], False)
    columns = [_real_column(lab, parts.target) for parts in lab.train.batches]
    targets = [c for c in columns if c is not None]
    if not targets or len(targets) < len(columns):
        return [], False
    middle = np.concatenate(targets).astype(np.float64).mean()
    return [(t > middle).astype(np.int64) for t in targets], True


def _real_column(lab: Lab, target: object) -> np.ndarray | None:
    arrays = numbers(target, lab.adapter)
    if len(arrays) != 1 or arrays[0].values.dtype.kind != "f":
        return None
    values = arrays[0].values
    if values.ndim not in (1, 2) or values.size != len(values) or not np.isfinite(values).all():
        return None
    return values.reshape(-1)


def _is_unending(lab: Lab) -> bool:
    return not lab.train.complete and data_rows(lab.subject.train, lab.adapter) is None


def _repeats(lab: Lab) -> bool | None:
    """Does a second epoch begin as the first did? None where that says nothing: one batch, or a list of batches."""
    first = lab.train
    if isinstance(lab.subject.train, Sequence) or len(first.exact) < 2:
        return None
    second = Readings(Split.TRAIN)
    try:
        batches = iter(open_source(lab.subject.train, lab.adapter, "train").batches)
        for raw in islice(batches, min(COMPARED_BATCHES, len(first.exact))):
            note(contents(take_apart(raw, lab.subject.split), lab.adapter), second)
            if lab.time_is_up():
                break
    except Exception:  # a source that can be read only once shows it here; the first epoch was examined all the same
        return None
    if not second.exact:
        return None
    if all(np.array_equal(a, b) for a, b in zip(first.exact, second.exact, strict=False)):
        return True
    # Augmentation changes every input and leaves the labels: then their sequence tells.
    same = all(np.array_equal(a, b) for a, b in zip(first.labels, second.labels, strict=False))
    return bool(second.labels) and same and _information(second.labels) > LEAST_INFORMATION


def _information(labels: list[np.ndarray]) -> float:
    """How unlikely this sequence is under a random order: entropy times samples, in nats."""
    _, counts = np.unique(np.concatenate(labels), return_counts=True)
    return float(-np.sum(counts * np.log(counts / counts.sum())))
