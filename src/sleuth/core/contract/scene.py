"""A step that was kept whole because something went wrong in it, and what became of it when it was done again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.location import Location

# Of one run. A scene holds a copy of the batch, the weights and the optimiser's state.
MOST_SCENES = 8
MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class StoredArray:
    """Values as they lie in memory; `dtype` such as float32, bfloat16."""

    dtype: str
    shape: tuple[int, ...]
    data: Any  # bytes, or a NumPy array of uint8

    @property
    def values(self) -> np.ndarray:
        """As a NumPy array; bfloat16, which NumPy lacks, is widened."""
        if self.dtype == "bfloat16":
            wide = np.frombuffer(self.data, dtype="<u2").astype("<u4") << 16
            return wide.view("<f4").reshape(self.shape)
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class Scene:
    """`facts` are plain JSON: what happened, the step, the form of the batch, the last steps, the user's lines, what was left
    out. `arrays`: batch.…, loss.…, weights.…, optimiser.…, random.…, output.…"""

    number: int
    facts: Mapping[str, Any]
    arrays: Mapping[str, StoredArray] = field(repr=False)

    @property
    def name(self) -> str:
        """Of the finding that it belongs to."""
        return str(self.facts["name"])

    @property
    def step(self) -> int:
        return int(self.facts["step"])

    @property
    def samples(self) -> list[int] | None:
        """The batch's samples, by their index in the data set; None where no sampler told."""
        indices = (self.facts.get("samples") or {}).get("indices")
        return list(indices) if indices is not None else None


@dataclass(frozen=True)
class Operation:
    """One operation of a step that was done again. `low` and `high` are None where nothing finite came out."""

    name: str
    layer: str
    location: Location | None
    shape: tuple[int, ...]
    low: float | None
    high: float | None
    nans: int = 0
    infs: int = 0
    direction: str = "forward"

    @property
    def is_finite(self) -> bool:
        return not (self.nans or self.infs)


@dataclass(frozen=True)
class Replayed:
    """Verdicts: same (to the last bit), close (within rounding), different, unknown (there is nothing to compare)."""

    scene: Scene
    verdict: str
    compared: tuple[str, ...]  # what was compared, and with what result
    loss: float | None  # None: there was none to compute; it may be NaN or Inf
    recorded_loss: float | None
    operations: tuple[Operation, ...]
    origin: Operation | None  # where NaN or Inf was born
    gradients: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # parameter → NaN, Inf; only those that hold some
    notes: tuple[str, ...] = ()

    @property
    def reproduced(self) -> bool:
        return self.verdict in ("same", "close")
