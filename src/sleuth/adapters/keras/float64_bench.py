"""A bench that computes in float64."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from sleuth.adapters.keras import backend
from sleuth.adapters.keras.bench import KerasBench
from sleuth.core.contract.adapter import Gradients
from sleuth.core.observation import Observation
from sleuth.core.subject import Parts


class DoubleBench(KerasBench):
    """Every floating input and target is widened on its way in."""

    def _converted(self, array: Any) -> Any:
        values = backend.values(array)
        wide = values.astype(np.float64) if values.dtype.kind == "f" else values
        return keras.ops.convert_to_tensor(wide)

    def write(self, path: str, values: np.ndarray) -> None:
        with self.side.wide():
            super().write(path, values)

    def forward(self, inputs: Any) -> Any:
        with self.side.wide():
            return super().forward(inputs)

    def loss(self, batch: Parts) -> float:
        with self.side.wide():
            return super().loss(batch)

    def gradients(self, batch: Parts) -> Gradients:
        with self.side.wide():
            return super().gradients(batch)

    def apply(self, batch: Parts) -> None:
        with self.side.wide():
            super().apply(batch)

    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        with self.side.wide():
            yield from list(super().observe(batch, step))
