"""Looks for training samples that stand there more than once, and for equals under different labels."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.core.contract.adapter import Rows
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.reading.batch_facts import contents
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.core.trial import Repeats
from sleuth.probes.data.reading import note
from sleuth.probes.fingerprints.bulk import read_in_bulk
from sleuth.probes.fingerprints.coincidence import coincidence
from sleuth.probes.fingerprints.fingerprint import BLANK
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.samples import data_rows, join

# A loader may draw samples again on purpose; sets up to this size are read once more in their own order to tell. Of larger
# ones, unless they stand in arrays, so many samples are, to see that the loader gave each of them once.
MOST_ROWS = 50_000
LOOKED_UP = 512


@probe(title="Looking for repeated samples", stage=Stage.DATA, rank=30, emits=(Repeats,), share=0.15)
def repeats(lab: Lab) -> Iterator[Observation]:
    read = _read(lab)
    if not read.exact:
        raise Unsupported("a batch holds no array with one entry a sample, so samples cannot be compared")
    prints = np.concatenate(read.exact)
    labels = np.concatenate(read.labels) if read.labels else None
    if labels is not None and len(labels) != len(prints):
        labels = None
    kept = prints != BLANK
    if kept.sum() < 2:
        raise Unsupported("fewer than two training samples can be compared")
    found = _count(lab, prints[kept], labels[kept] if labels is not None else None, np.flatnonzero(kept))
    unending = read is lab.train and not read.complete and data_rows(lab.subject.train, lab.adapter) is None
    yield replace(found, complete=read.complete, unending=unending)


def _read(lab: Lab) -> Readings:
    """Fingerprints and classes: in the data set's own order, else as they were read."""
    rows = data_rows(lab.subject.train, lab.adapter)
    if rows is None:
        return lab.train
    if rows.bulk or rows.count <= MOST_ROWS:
        return read_in_bulk(lab, rows, lab.train)
    if lab.train.complete and lab.train.samples == rows.count and _gave_each(lab, rows):
        return lab.train
    raise Unsupported(f"{rows.count} samples are too many to read once more in the data set's own order")


def _gave_each(lab: Lab, rows: Rows) -> bool:
    """Where samples are drawn with replacement, a third of them is never given."""
    some = np.unique(np.linspace(0, rows.count - 1, LOOKED_UP).astype(np.int64))
    looked_up = Readings(lab.train.split)
    note(contents(take_apart(rows.take(some), lab.subject.split), lab.adapter), looked_up)
    return bool(looked_up.exact) and bool(np.isin(looked_up.exact[0], np.concatenate(lab.train.exact)).all())


def _count(lab: Lab, prints: np.ndarray, labels: np.ndarray | None, positions: np.ndarray) -> Repeats:
    _, first, inverse, counts = np.unique(prints, return_index=True, return_inverse=True, return_counts=True)
    repeated = np.flatnonzero(counts[inverse] > 1)
    example = None
    if repeated.size:
        pair = np.flatnonzero(inverse == inverse[repeated[0]])[:2]
        example = int(positions[pair[0]]), int(positions[pair[1]])
    conflicting, conflict = _conflicts(inverse, labels, positions) if labels is not None else (0, None)
    return Repeats(
        samples=len(prints),
        distinct=len(counts),
        most=int(counts.max()),
        example=example,
        coincidence=_coincidence(lab) if repeated.size else 0.0,
        evens_classes=labels is not None and _evens_classes(labels, labels[first]),
        labelled=labels is not None,
        conflicting=conflicting,
        conflict=conflict,
    )


def _conflicts(inverse: np.ndarray, labels: np.ndarray, positions: np.ndarray) -> tuple[int, tuple[int, int, int, int] | None]:
    order = np.lexsort((labels, inverse))
    group, label = inverse[order], labels[order]
    borders = (group[1:] == group[:-1]) & (label[1:] != label[:-1])
    if not borders.any():
        return 0, None
    a, b = order[np.argmax(borders)], order[np.argmax(borders) + 1]
    count = int(np.isin(inverse, group[1:][borders]).sum())
    return count, (int(positions[a]), int(labels[a]), int(positions[b]), int(labels[b]))


def _evens_classes(labels: np.ndarray, distinct: np.ndarray) -> bool:
    """Do the repeats make the classes more equal in number than they are without them?"""
    classes = np.unique(distinct)
    with_repeats, without = ([int(np.sum(some == c)) for c in classes] for some in (labels, distinct))
    return max(without) / min(without) > 1.5 and max(with_repeats) / min(with_repeats) < max(without) / min(without) / 1.5


def _coincidence(lab: Lab) -> float:
    samples = join(lab.train.batches, lab.adapter)
    return coincidence(samples.blocks, samples.blocks, lab.train.samples)
