"""The first batches of a training that is followed, as an examination reads its data: facts about them come out together."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from sleuth.core.observation import Batch

# A column that is constant in the first few samples need not be.
ENOUGH_SAMPLES = 512
MOST_BATCHES = 24
# More batches of a single class than chance gives, in standard errors: they come in order, and the first ones say nothing about
# how frequent classes are.
SORTED = 3.0
# From so few samples on a batch is the rest of an epoch, where others are larger.
REST = 2


class FirstBatches:
    def __init__(self) -> None:
        self._waiting: list[Batch] = []
        self.told = False

    def add(self, batch: Batch) -> Sequence[Batch]:
        """What is to be said now."""
        if self.told:
            return ()
        self._waiting.append(batch)
        samples = sum(b.size for b in self._waiting)
        return self.tell() if samples >= ENOUGH_SAMPLES or len(self._waiting) >= MOST_BATCHES else ()

    def tell(self) -> Sequence[Batch]:
        """All that waits, once."""
        found, self._waiting = self._waiting, []
        if self.told or not found:
            return ()
        self.told = True
        return together(found)


def together(found: list[Batch]) -> list[Batch]:
    """Without the rest of an epoch, and without labels where they come in order."""
    if median(b.size for b in found) > REST:
        found = [b for b in found if b.size > REST]
    return [replace(b, labels=None) for b in found] if _sorted_by_class(found) else found


def _sorted_by_class(batches: list[Batch]) -> bool:
    counted = [b.labels for b in batches if b.labels]
    total: Counter[int] = Counter()
    for labels in counted:
        total.update(labels)
    if len(total) < 2:
        return bool(counted)
    share = max(total.values()) / sum(total.values())
    expected = sum(share ** sum(labels.values()) for labels in counted)
    return sum(len(labels) == 1 for labels in counted) > expected + SORTED * max(expected, 1.0) ** 0.5
