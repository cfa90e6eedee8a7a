"""A few thousand samples for simple learners, in the data set's own order where that can be had."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter, Orders, Rows
from sleuth.core.errors import Unsupported
from sleuth.core.runtime.tree import leaves
from sleuth.core.subject import Parts, take_apart
from sleuth.probes.lab.probe import Lab, Readings
from sleuth.probes.learners.features import compact

MOST = 2048
# A large data set is read in runs of neighbours, so that a shift by a few rows shows, spread over all of it.
RUN = 128
# Reading by position may be slow (files): after this share of the probe's time, what was read must do.
READING_SHARE = 0.3


@dataclass(frozen=True)
class Samples:
    """`blocks`: compacted inputs, one row a sample. `positions`: in the data set, rising; None when the order is lost."""

    blocks: list[np.ndarray]
    targets: list[np.ndarray]
    positions: np.ndarray | None = None
    total: int | None = None  # samples of the whole data set, where positions are known
    pictures: bool = False  # an input has rows, columns and channels
    derived: frozenset[int] = frozenset()  # blocks that sum an input up, beside the block that holds its values

    def __len__(self) -> int:
        return len(self.blocks[0])

    @property
    def values(self) -> list[np.ndarray]:
        """The blocks that hold the inputs themselves."""
        return [block for i, block in enumerate(self.blocks) if i not in self.derived]


def collect(lab: Lab) -> Samples:
    """Training samples: in the order of the data set, else as the loader gave them."""
    rows = data_rows(lab.subject.train, lab.adapter)
    if rows is not None and rows.count > 1:
        try:
            return _in_order(lab, rows)
        except Exception:  # a data set may read only inside its loader's workers: then the order stays unknown
            pass
    return from_readings(lab, lab.train)


def from_readings(lab: Lab, readings: Readings) -> Samples:
    """What was kept of a split, as it came. A list of batches has an order of its own, a loader most likely not."""
    samples = join(readings.batches, lab.adapter)
    if isinstance(lab.subject.train, list | tuple) and readings is lab.train and not readings.order_is_ours:
        whole = readings.complete and readings.samples == len(samples)
        return replace(samples, positions=np.arange(len(samples)), total=len(samples) if whole else None)
    return samples


def data_rows(source: Any, adapter: Adapter) -> Rows | None:
    arrays = list(source.values()) if isinstance(source, Mapping) else source
    if isinstance(arrays, list | tuple) and len(arrays) >= 2 and all(adapter.is_array(a) for a in arrays):
        names = list(source) if isinstance(source, Mapping) else []

        def take(positions: np.ndarray) -> Any:
            parts = tuple(a[positions] for a in arrays)
            return dict(zip(names, parts, strict=True)) if names else parts

        return Rows(len(arrays[0]), take, bulk=True)
    return adapter.rows(source) if isinstance(adapter, Orders) else None


def _in_order(lab: Lab, rows: Rows) -> Samples:
    allowed = READING_SHARE * max(0.0, min(lab.probe_deadline - lab.clock(), lab.seconds_left()))
    until = lab.clock() + allowed
    taken, batches = [], []
    for run in _runs(rows.count):
        batches.append(take_apart(rows.take(run), lab.subject.split))
        taken.append(run)
        if lab.clock() > until:
            break
    first = np.argsort([run[0] for run in taken], kind="stable")
    samples = join([batches[i] for i in first], lab.adapter)
    positions = np.concatenate([taken[i] for i in first])
    if len(positions) != len(samples):
        raise Unsupported("the data set gives more or fewer samples than positions")
    return replace(samples, positions=positions, total=rows.count)


def _runs(count: int) -> Iterator[np.ndarray]:
    """Runs of positions, each followed by its mirror image from the end: so that a reversed order shows too."""
    runs = [np.arange(start, min(start + RUN, count)) for start in range(0, count, RUN)]
    if count > MOST:
        starts = np.linspace(0, count / 2 - RUN, MOST // RUN // 2).astype(int)
        early = [np.arange(s, s + RUN) for s in starts]
        runs = [run for pair in zip(early, [count - 1 - r[::-1] for r in early], strict=True) for run in pair]
    yield from runs


def join(batches: Iterable[Parts], adapter: Adapter) -> Samples:
    inputs: list[list[np.ndarray]] = []
    targets: list[list[np.ndarray]] = []
    count = 0
    for batch in batches:
        arrays = _arrays(batch.inputs, adapter)
        size = len(arrays[0]) if arrays else 0
        if not size or any(len(a) != size for a in (*arrays, *_arrays(batch.target, adapter))):
            raise Unsupported("inputs and targets of a batch do not have one entry a sample")
        compacted = [compact(array) for array in arrays]
        inputs.append([block for blocks in compacted for block in blocks])
        targets.append(_arrays(batch.target, adapter))
        count += size
        if count >= MOST:
            break
    if not inputs or len({len(i) for i in inputs}) > 1 or len({len(t) for t in targets}) > 1:
        raise Unsupported("the batches do not all hold the same arrays")
    return Samples(
        [_stack(list(b)) for b in zip(*inputs, strict=True)],
        [_stack(list(t)) for t in zip(*targets, strict=True)],
        pictures=any(a.ndim > 3 for a in arrays),
        derived=frozenset(np.flatnonzero([i > 0 for blocks in compacted for i in range(len(blocks))]).tolist()),
    )


def _arrays(tree: Any, adapter: Adapter) -> list[np.ndarray]:
    values = [adapter.values(array) for _, array in leaves(tree, adapter.is_array)]
    return [v for v in values if v.ndim and v.dtype.kind in "biuf"]


def _stack(parts: list[np.ndarray]) -> np.ndarray:
    """Batches padded to their own longest sample are padded on (token ids) or cut to the shortest (others)."""
    if len({p.shape[1:] for p in parts}) == 1:
        return np.concatenate(parts)
    if any(p.ndim != 2 for p in parts):
        raise Unsupported("the targets of different batches differ in their shape")
    if parts[0].dtype == np.int64:
        longest = max(p.shape[1] for p in parts)
        return np.concatenate([np.pad(p, ((0, 0), (0, longest - p.shape[1]))) for p in parts])
    shortest = min(p.shape[1] for p in parts)
    return np.concatenate([p[:, :shortest] for p in parts])
