"""Letters counted from one: the last letter has no row in a table that counts from zero."""

import numpy as np

from sleuth import Subject
from sleuth.testing import Kit

LETTERS = 20
LENGTH = 10


def words(first: int) -> tuple[np.ndarray, np.ndarray]:
    """Two kinds of words that use the two halves of the alphabet with different frequency."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 800)
    early = rng.random((800, LENGTH)) < np.where(labels, 0.7, 0.3)[:, None]
    half = LETTERS // 2
    ids = np.where(early, rng.integers(0, half, early.shape), rng.integers(half, LETTERS, early.shape))
    return ids.astype(np.int64) + first, labels.astype(np.int64)


def training(kit: Kit, first: int) -> Subject:
    model = kit.sequential(
        kit.layer("embedding", LETTERS, 8),
        kit.layer("flatten"),
        kit.linear(8 * LENGTH, 16),
        kit.activation("relu"),
        kit.linear(16, 2),
    )
    return Subject(model, kit.loader(*words(first)), kit.loss("cross-entropy"), kit.optimiser(model, "adam", lr=3e-3))


def sick(kit: Kit) -> Subject:
    return training(kit, first=1)


def healthy(kit: Kit) -> Subject:
    return training(kit, first=0)
