"""The first batches of `fit`, described as an examination reads its data: copied at once, measured off the training thread."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import keras

from sleuth.adapters.keras.watching.basin import parts_of
from sleuth.adapters.keras.watching.feeding import rows_of
from sleuth.core.batch_facts import contents, describe_batch
from sleuth.core.observation import Batch, Observation, Split
from sleuth.core.subject import Parts

# Facts about data come out together: a column that is constant in the first few samples need not be.
ENOUGH_SAMPLES = 512
MOST_BATCHES = 24
# More batches of a single class than chance gives, in standard errors: they come in order, and the first ones say nothing about
# how frequent classes are.
SORTED = 3.0
# From so few samples on a batch is the rest of a pass, where others are larger.
REST = 2


@dataclass(frozen=True)
class Described:
    """Of some batches, once somebody asks."""

    batches: tuple[tuple[int, Parts], ...]

    def observations(self) -> Iterator[Observation]:
        # The adapter itself opens watches.
        from sleuth.adapters.keras.adapter import KerasAdapter

        adapter = KerasAdapter()
        found = [describe_batch(contents(parts, adapter), Split.TRAIN, step, adapter) for step, parts in self.batches]
        if median(b.size for b in found) > REST:
            found = [b for b in found if b.size > REST]
        yield from [replace(b, labels=None) for b in found] if _sorted_by_class(found) else found


class Batches:
    def __init__(self) -> None:
        self._noted: list[tuple[int, Parts]] = []
        self._samples = 0
        self.is_over = False

    def note(self, step: int, data: Any) -> Described | None:
        """What is to be told, once there is enough."""
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        parts = parts_of(x, y, first=False)
        if parts is not None:
            self._noted.append((step, parts))
            self._samples += rows_of(parts.inputs)
        return self.told() if self._samples >= ENOUGH_SAMPLES or len(self._noted) >= MOST_BATCHES or parts is None else None

    def told(self) -> Described | None:
        self.is_over = True
        noted, self._noted = self._noted, []
        return Described(tuple(noted)) if noted else None


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
