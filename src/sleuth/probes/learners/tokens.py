"""Rows of token ids for simple learners: what occurs, what stands beside what, what stands at the ends."""

import numpy as np

# Tokens are counted in this many bins; small ids have a bin each, the others share by hash.
BAG, PAIRS, PLACES = 128, 64, 16
# Whole numbers in at most this many columns may also be quantities: counts, ages, coordinates.
QUANTITIES = 64
# An odd constant close to 2**32 divided by the golden ratio (Knuth) spreads ids over the bins.
SPREAD = 2_654_435_761


def count_tokens(ids: np.ndarray) -> np.ndarray:
    length = ids.shape[1]
    parts = [_counts(ids, BAG)]
    if length > 1:
        parts.append(_counts(ids[:, :-1] * 1_000_003 + ids[:, 1:] + BAG, PAIRS))
        ends = (0, 1, length - 2, length - 1) if length > 3 else range(length)
        parts += [_counts(ids[:, [place]], PLACES) for place in ends]
    if length <= QUANTITIES:
        parts.append(ids.astype(np.float32))
    return np.concatenate(parts, axis=1)


def shuffle_tokens(ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each column in an order of its own. Padding stays, or the common length would pass for structure."""
    values, counts = np.unique(ids[:, -1], return_counts=True)
    trailing = np.logical_and.accumulate(ids[:, ::-1] == values[np.argmax(counts)], axis=1)[:, ::-1]
    mixed = ids.copy()
    for column in range(ids.shape[1]):
        rows = np.flatnonzero(~trailing[:, column])
        mixed[rows, column] = ids[rng.permutation(rows), column]
    return mixed


def _counts(ids: np.ndarray, bins: int) -> np.ndarray:
    """Square roots of counts, which vary equally whatever their size."""
    with np.errstate(over="ignore"):
        places = np.where((ids >= 0) & (ids < bins), ids, (ids * SPREAD >> 7) % bins)
    rows = np.arange(len(ids))[:, None] * bins
    table = np.bincount((rows + places).ravel(), minlength=len(ids) * bins).reshape(len(ids), bins)
    return np.sqrt(table).astype(np.float32)
