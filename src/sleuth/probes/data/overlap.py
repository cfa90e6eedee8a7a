"""Looks for validation samples that stand in the training set."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.stage import Stage
from sleuth.core.trial import Matches, Overlap
from sleuth.probes.fingerprints.bulk import whole_prints
from sleuth.probes.fingerprints.coincidence import coincidence
from sleuth.probes.fingerprints.fingerprint import BLANK
from sleuth.probes.lab.probe import Lab, Readings, probe
from sleuth.probes.lab.samples import join

EXAMPLES = 5


@probe(title="Comparing training and validation", stage=Stage.DATA, rank=20, emits=(Overlap,), share=0.15)
def overlap(lab: Lab) -> Iterator[Observation]:
    if lab.validation is None:
        raise Unsupported("no validation data was given")
    validation = whole_prints(lab, lab.subject.validation, lab.validation)
    found = compare(whole_prints(lab, lab.subject.train, lab.train), validation)
    yield replace(found, coincidence=_coincidence(lab, lab.validation)) if found.rounded.found else found


def compare(train_readings: Readings, validation_readings: Readings) -> Overlap:
    train, validation = _columns(train_readings), _columns(validation_readings)
    if train is None or validation is None:
        raise Unsupported("a batch holds no array with one entry a sample, so samples cannot be compared")
    blank = validation[:, 0] == BLANK
    kept_train, kept = train[train[:, 0] != BLANK], validation[~blank]
    if not len(kept) or not len(kept_train):
        raise Unsupported("every sample of a split is blank: all its values are the same")
    exact = np.isin(kept[:, 0], kept_train[:, 0])
    rounded = exact | np.isin(kept[:, 1], kept_train[:, 1]) | np.isin(kept[:, 2], kept_train[:, 2])
    positions = np.flatnonzero(~blank)
    return Overlap(
        train_samples=len(kept_train),
        validation_samples=len(kept),
        exact=_matches(exact, kept, kept_train, columns=(0,)),
        rounded=_matches(rounded, kept, kept_train, columns=(1, 2)),
        examples=tuple(_example(i, kept, train, positions) for i in np.flatnonzero(rounded)[:EXAMPLES]),
        complete=train_readings.complete and validation_readings.complete,
        blank_samples=int(blank.sum()),
    )


def _coincidence(lab: Lab, validation: Readings) -> float:
    try:
        train, asked = join(lab.train.batches, lab.adapter), join(validation.batches, lab.adapter)
    except Unsupported:
        return 1.0
    return coincidence(asked.blocks, train.blocks, lab.train.samples)


def _columns(readings: Readings) -> np.ndarray | None:
    """(n, 3): the exact fingerprint and the two rounded ones."""
    if not readings.exact:
        return None
    return np.column_stack([np.concatenate(readings.exact), np.concatenate(readings.rounded)])


def _matches(found: np.ndarray, validation: np.ndarray, train: np.ndarray, columns: tuple[int, ...]) -> Matches:
    _, first = np.unique(validation[:, columns[0]], return_index=True)
    return Matches(
        found=int(found.sum()),
        distinct=len(first),
        distinct_found=int(found[first].sum()),
        train_repeated=_repeated(train, columns),
        validation_repeated=_repeated(validation, columns),
    )


def _repeated(samples: np.ndarray, columns: tuple[int, ...]) -> int:
    """Samples that have an equal among the others."""
    repeated = np.zeros(len(samples), dtype=bool)
    for column in columns:
        _, inverse, counts = np.unique(samples[:, column], return_inverse=True, return_counts=True)
        repeated |= counts[inverse] > 1
    return int(repeated.sum())


def _example(index: int, validation: np.ndarray, train: np.ndarray, positions: np.ndarray) -> tuple[int, int]:
    equal = (train == validation[index]).any(axis=1)
    return int(positions[index]), int(np.argmax(equal))
