"""Looks for training samples that stand there more than once, and for equals under different labels."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.subject import take_apart
from sleuth.core.trial import Repeats
from sleuth.probes.batch_facts import contents, labels_of
from sleuth.probes.coincidence import coincidence
from sleuth.probes.fingerprint import BLANK, fingerprints
from sleuth.probes.probe import Lab, probe
from sleuth.probes.samples import data_rows, join

# A loader may draw samples again on purpose; sets up to this size are read once more in their own order to tell.
MOST_ROWS = 50_000
CHUNK = 512


@probe(title="Looking for repeated samples", stage=Stage.DATA, rank=30, emits=(Repeats,))
def repeats(lab: Lab) -> Iterator[Observation]:
    prints, labels = _read(lab)
    kept = prints != BLANK
    if kept.sum() < 2:
        raise Unsupported("fewer than two training samples can be compared")
    positions = np.flatnonzero(kept)
    yield _count(lab, prints[kept], labels[kept] if labels is not None else None, positions)


def _read(lab: Lab) -> tuple[np.ndarray, np.ndarray | None]:
    """Fingerprints and classes: in the data set's own order, else as they were read."""
    rows = data_rows(lab.subject.train, lab.adapter)
    if rows is None:
        if not lab.train.exact:
            raise Unsupported("a batch holds no array with one entry a sample, so samples cannot be compared")
        labels = np.concatenate(lab.train.labels) if lab.train.labels else None
        prints = np.concatenate(lab.train.exact)
        return prints, labels if labels is not None and len(labels) == len(prints) else None
    if rows.count > MOST_ROWS:
        raise Unsupported(f"{rows.count} samples are too many to read once more in the data set's own order")
    found, classes = [], []
    for start in range(0, rows.count, CHUNK):
        lab.tick()
        batch = contents(take_apart(rows.take(np.arange(start, min(start + CHUNK, rows.count))), lab.subject.split), lab.adapter)
        found.append(fingerprints([n.values for n in batch.inputs if n.values.ndim])[0])
        classes.append(labels_of(batch.targets))
    known = [c for c in classes if c is not None]
    return np.concatenate(found), np.concatenate(known) if len(known) == len(classes) else None


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
