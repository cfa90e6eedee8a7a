"""Asks whether the source brings different batches, or one and the same at every step."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.reading.batch_facts import Named, numbers
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import Feeding
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.samples import data_rows


@probe(title="Comparing the batches with each other", stage=Stage.DATA, rank=12, emits=(Feeding,), share=0.05)
def feeding(lab: Lab) -> Iterator[Observation]:
    read, given = lab.train, lab.subject.train
    if read.order_is_ours and isinstance(given, Mapping | Sequence):
        raise Unsupported("no loader was given: sleuth itself draws the batches")
    if not read.exact:
        raise Unsupported("a batch holds no array with one entry a sample, so batches cannot be compared")
    if lab.subject.step is not None and _is_empty(lab):
        raise Unsupported("the batches hold one value throughout: your step seems to make its own data")
    size = len(read.exact[0])
    full = [batch.tobytes() for batch in read.exact if len(batch) == size]
    distinct = len(set(full))
    if distinct == 1:
        # Fingerprints leave out targets and whatever has no entry a sample; they are taken while reading, though, so
        # that a source which fills one buffer again and again is not mistaken for one that stands still.
        distinct = len({_digest(lab, parts) for parts in read.batches if _size(lab, parts) == size})
    rows = data_rows(given, lab.adapter)
    yield Feeding(
        batches=len(full),
        distinct=distinct,
        samples=size,
        distinct_samples=len(np.unique(read.exact[0])),
        complete=read.complete,
        available=None if rows is None else rows.count,
        listed=isinstance(given, Sequence),
        validation_samples=None if lab.validation is None else lab.validation.samples,
    )


def _is_empty(lab: Lab) -> bool:
    return all((named.values == named.values.flat[0]).all() for named in _everything(lab, lab.batch) if named.values.size)


def _size(lab: Lab, parts: Parts) -> int:
    return next((len(n.values) for n in numbers(parts.inputs, lab.adapter) if n.values.ndim), 1)


def _digest(lab: Lab, parts: Parts) -> bytes:
    """Of every array of the batch, the target included."""
    digest = hashlib.blake2b(digest_size=16)
    for named in _everything(lab, parts):
        digest.update(repr((named.path, named.values.shape, named.values.dtype.str)).encode())
        digest.update(np.ascontiguousarray(named.values).tobytes())
    return digest.digest()


def _everything(lab: Lab, parts: Parts) -> list[Named]:
    return numbers((parts.inputs, parts.target), lab.adapter)
