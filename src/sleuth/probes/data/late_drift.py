"""What came late in a training, beside what came first: a stream may change its nature when nobody looks any more."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sleuth.core.contract.adapter import Adapter
from sleuth.core.contract.kept import Passed
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Split
from sleuth.core.reading.batch_facts import contents, describe_batch
from sleuth.core.statistics import Statistics, merge
from sleuth.core.trial import Alignment, Drift, Late
from sleuth.probes.lab.samples import Samples, join
from sleuth.probes.learners.features import tabulate
from sleuth.probes.learners.learnability import LEVEL, Learnability, Result
from sleuth.probes.learners.simple_learners import Bank
from sleuth.probes.learners.targets import encode

# A short run has no late part: what counts must be many steps away from the first ones.
LEAST_STEPS = 200
LEAST_BATCHES = 5
# Of the steps: the first part is early. Labels are asked about in the last one alone, as what goes wrong may do so slowly.
EARLY, LATE, LAST = 0.25, 0.5, 0.8
# Of samples, to be told from: fewer show a link or not by luck, more cost time.
LEAST_SAMPLES, MOST_SAMPLES = 100, 1024
# Late values must vary so much, of what early ones do.
NARROWED = 0.5
# A batch has left the beginning when its typical feature is so many spreads away from it, or as many times wider.
LEFT = 0.5


def parts(batches: Sequence[Passed], late: float = LATE) -> tuple[list[Passed], list[Passed]]:
    """Early and late ones, by their steps."""
    last = max((p.step for p in batches), default=0)
    if last < LEAST_STEPS:
        return [], []
    return [p for p in batches if p.step < EARLY * last], [p for p in batches if p.step >= late * last]


def drift(train: Sequence[Passed], validation: Sequence[Passed], adapter: Adapter) -> Drift:
    early, late = parts(train)
    if min(len(early), len(late)) < LEAST_BATCHES:
        raise Unsupported("the run is too short to compare its end with its beginning")
    since = min(p.step for p in late)
    then = [p for p in validation if p.step >= since] or list(validation)
    before = [p for p in validation if p.step < since] or list(validation)
    tables = [t for some in (early, late, before, then) if (t := _features(some, adapter)) is not None]
    if len(tables) < 4 or any(t.shape != tables[0].shape for t in tables):
        raise Unsupported("the inputs have no features that can be compared one by one")
    return Drift(since, tables[0], tables[1], tables[2], tables[3], _began(train, tables[0], adapter))


def _features(batches: Sequence[Passed], adapter: Adapter) -> np.ndarray | None:
    total: np.ndarray | None = None
    for passed in batches:
        table = describe_batch(contents(passed.parts, adapter), Split.TRAIN, 0, adapter).features
        if table is not None and (total is None or table.shape == total.shape):
            total = table if total is None else merge(total, table)
    return total


def _began(train: Sequence[Passed], early: np.ndarray, adapter: Adapter) -> int | None:
    found: int | None = None
    for passed in sorted(train, key=lambda p: -p.step):
        table = _features([passed], adapter)
        if table is None or table.shape != early.shape or _distance(early, table) < LEFT:
            break
        found = passed.step
    return found


def _distance(early: np.ndarray, other: np.ndarray) -> float:
    pairs = [(Statistics.from_row(a), Statistics.from_row(b)) for a, b in zip(early, other, strict=True)]
    moved = [(abs(b.mean - a.mean) / a.std, abs(float(np.log(b.std / a.std)))) for a, b in pairs if a.std > 0 and b.std > 0]
    return float(np.max(np.median(moved, axis=0))) if moved else 0.0


def late_alignment(whole: Alignment, train: Sequence[Passed], validation: Sequence[Passed], adapter: Adapter) -> Alignment:
    """Do the last targets belong to their inputs as the first ones do? Asked with as many samples each time."""
    early, late = parts(train, LAST)
    if whole.p_value > LEVEL or not early or len(late) < LEAST_BATCHES or not validation:
        return whole
    try:
        first, last, others = (join([p.parts for p in some], adapter) for some in (early, late, validation))
        count = min(len(first), len(last), len(others), MOST_SAMPLES)
        if count < LEAST_SAMPLES or not _vary_alike(first, last):
            return whole
        then, now, there = (_told(_thinned(some, count)) for some in (first, last, others))
    except Unsupported:
        return whole
    since = min(p.step for p in late)
    found = Late(since, count, now.skill, then.skill, then.p_value, there.skill, there.p_value)
    return replace(whole, late=found)


def _thinned(samples: Samples, count: int) -> Samples:
    rows = np.linspace(0, len(samples) - 1, count).astype(np.int64)
    return replace(samples, blocks=[b[rows] for b in samples.blocks], targets=[t[rows] for t in samples.targets])


def _told(samples: Samples) -> Result:
    rng = np.random.default_rng(0)
    encoded = encode(samples.targets, samples.blocks)
    bank = Bank(tabulate(samples.blocks, rng), rng)
    return Learnability(bank, encoded.columns, rng).test(np.arange(len(samples))[None])[0]


def _vary_alike(first: Samples, last: Samples) -> bool:
    """Where samples or targets have become all the same there is nothing to be told any more."""
    pairs = [*zip(first.values, last.values, strict=True), *zip(first.targets, last.targets, strict=True)]
    return all(b.shape[1:] == a.shape[1:] and _spread(b) >= NARROWED * _spread(a) for a, b in pairs)


def _spread(values: np.ndarray) -> float:
    return float(np.median(values.astype(np.float64).reshape(len(values), -1).std(axis=0)))
