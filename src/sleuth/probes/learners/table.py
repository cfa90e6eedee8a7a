"""Training data as a table with one target: columns that each mean something of their own."""

from dataclasses import dataclass

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.reading.batch_facts import Named, numbers
from sleuth.probes.lab.probe import Lab
from sleuth.probes.lab.samples import Samples
from sleuth.probes.learners.targets import IGNORED

# With fewer samples a near-perfect column may be luck; with fewer columns it may be the task: y = f(x).
FEWEST, FEWEST_COLUMNS = 60, 4
MOST_COLUMNS = 2048
# A class needs so many samples for its share of errors to mean something; more classes than these are identities.
FEWEST_PER_CLASS, MOST_CLASSES = 8, 64


@dataclass(frozen=True)
class Table:
    columns: np.ndarray  # (n, columns), float64
    names: list[str]
    target: np.ndarray  # classes 0 … classes − 1, or numbers
    classes: int


def table_inputs(lab: Lab) -> list[Named]:
    """The inputs, when they are columns that each mean something of their own."""
    if lab.subject.step is not None and lab.subject.split is None:
        raw = lab.batch.raw
        if isinstance(raw, tuple | list) and len(raw) > 2:
            raise Unsupported(
                f"which of the {len(raw)} parts of a batch is the target is known to step= alone; say it with split="
            )
    arrays = [n for n in numbers(lab.batch.inputs, lab.adapter) if n.values.ndim]
    if not arrays or any(n.values.ndim > 2 for n in arrays):
        raise Unsupported("the inputs are not a table: a single value of an image or a sequence is no feature")
    if not any(n.values.dtype.kind in "fb" or n.values.dtype == np.uint8 for n in arrays):
        raise Unsupported("the inputs are ids: in a sequence of them the target may stand by design")
    return arrays


def make_table(arrays: list[Named], samples: Samples) -> Table:
    blocks = samples.values
    if len(blocks) != len(arrays) or len(samples.targets) != 1:
        raise Unsupported("the batches do not hold one table and one target")
    names = [
        f"column {i}" if len(blocks) == 1 else f"{named.path} column {i}"
        for named, block in zip(arrays, blocks, strict=True)
        for i in range(block.shape[1])
    ]
    columns = np.concatenate([block.astype(np.float64) for block in blocks], axis=1)
    keep = columns.std(axis=0) > 0
    if keep.sum() < FEWEST_COLUMNS:
        raise Unsupported(f"with {int(keep.sum())} columns one that tells the target may be the task itself")
    if len(keep) > MOST_COLUMNS:
        raise Unsupported(f"{len(keep)} columns are more than are tried one by one")
    target, known, classes = _target(samples.targets[0])
    if known.sum() < FEWEST:
        raise Unsupported(f"cannot tell from {int(known.sum())} samples: at least {FEWEST} are needed")
    return Table(columns[known][:, keep], [n for n, k in zip(names, keep, strict=True) if k], target[known], classes)


def _target(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """(target, which samples have one that counts, classes); 0 classes: numbers."""
    flat = values.reshape(len(values), -1)
    if flat.shape[1] > 1 and (flat >= 0).all() and np.allclose(flat.sum(axis=1), 1, atol=1e-3):
        flat = flat.argmax(axis=1)[:, None]  # one-hot, smoothed or soft classes
        values = flat
    if flat.shape[1] != 1:
        raise Unsupported(f"the target has {flat.shape[1]} values a sample, not one")
    column = flat[:, 0].astype(np.float64)
    whole = values.dtype.kind != "f" or bool(np.isin(column, (0, 1)).all())
    if not whole:
        known = np.isfinite(column)
        if not known.any() or np.ptp(column[known]) == 0:
            raise Unsupported("all samples that were looked at have the same target")
        return column, known, 0
    found, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    usable = (counts >= FEWEST_PER_CLASS) & (found != IGNORED)
    if usable.sum() < 2 or usable.sum() > MOST_CLASSES:
        raise Unsupported(
            f"{int(usable.sum())} classes have at least {FEWEST_PER_CLASS} samples; 2 to {MOST_CLASSES} can be judged"
        )
    numbered = np.cumsum(usable) - 1
    return numbered[inverse], usable[inverse], int(usable.sum())
