"""How likely a sample meets its equal by nature: from how nearly it misses doing so."""

import numpy as np

# So many samples and columns settle the answer; more would only cost time.
ASKED, ASKED_AGAINST, COLUMNS = 128, 512, 512
# A column that differs is worth half its bits: columns depend on each other, so that one often decides the next.
WORTH = 0.5
# No column is worth more bits than these, however fine its values.
MOST_BITS = 10.0


def coincidence(samples: list[np.ndarray], others: list[np.ndarray], total: int) -> float:
    """The share of samples expected to meet an equal among `total` others by nature, never by copying.

    `samples` and `others` are blocks of rows. Each other sample that differs is counted by the chance that it had not. A
    sample of three yes/no columns has neighbours that differ in one of them, so equals are no wonder; an image has none
    that differs in fewer than dozens of pixels.
    """
    a, b = _table(samples, ASKED), _table(others, ASKED_AGAINST)
    if a.shape[1] != b.shape[1]:
        return 1.0
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permutation(a.shape[1])[:COLUMNS])
    bits = np.array([_bits(b[:, column]) for column in columns]) * (a.shape[1] / len(columns))
    equals = np.empty(len(a))
    for row in range(len(a)):
        missing = (b[:, columns] != a[row, columns]) @ bits
        equals[row] = np.exp2(-WORTH * missing[missing > 0]).sum()
    return float(np.mean(np.minimum(1.0, total / len(b) * equals)))


def _table(blocks: list[np.ndarray], most: int) -> np.ndarray:
    spread = np.linspace(0, len(blocks[0]) - 1, min(most, len(blocks[0]))).astype(int)
    return np.concatenate([block[spread].astype(np.float64) for block in blocks], axis=1)


def _bits(column: np.ndarray) -> float:
    """Bits by which two samples are expected to differ here."""
    _, counts = np.unique(column, return_counts=True)
    return min(MOST_BITS, -float(np.log2(np.square(counts / len(column)).sum())))
