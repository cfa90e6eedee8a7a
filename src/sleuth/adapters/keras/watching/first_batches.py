"""The first batches of `fit`, described as an examination reads its data: copied at once, measured off the training thread."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import keras

from sleuth.adapters.common.first_batches import ENOUGH_SAMPLES, MOST_BATCHES, together
from sleuth.adapters.keras.watching.data_feeding import rows_of
from sleuth.adapters.keras.watching.reservoir import parts_of
from sleuth.core.observation import Observation, Split
from sleuth.core.reading.batch_facts import contents, describe_batch
from sleuth.core.subject import Parts


@dataclass(frozen=True)
class Described:
    """Of some batches, once somebody asks."""

    batches: tuple[tuple[int, Parts], ...]

    def observations(self) -> Iterator[Observation]:
        # The adapter itself opens watches.
        from sleuth.adapters.keras.adapter import KerasAdapter

        adapter = KerasAdapter()
        found = [describe_batch(contents(parts, adapter), Split.TRAIN, step, adapter) for step, parts in self.batches]
        yield from together(found)


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
