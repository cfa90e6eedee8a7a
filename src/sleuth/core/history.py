"""What was seen so far, in bounded memory, and the view of it that checks get."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sleuth.core.finding import Series
from sleuth.core.observation import (
    Absent,
    Architecture,
    Batch,
    Frame,
    Observation,
    Role,
    Settings,
    Split,
)
from sleuth.core.statistics import Statistics, merge, rms_of
from sleuth.core.trial import Trial

Kind = TypeVar("Kind", bound=Observation)

# Enough for a curve on a screen; beyond it every second entry is dropped and the stride doubles.
CAPACITY = 2048
# Frames are tables of all tensors; this many cover a short trial in full and a long run coarsely.
FRAME_CAPACITY = 256

SINGLE = (Architecture, Settings, Trial)


class Thinned:
    """A sequence that never grows past its capacity: the first and the latest entry always stay."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: list[Any] = []
        self._latest: Any = None
        self._stride = 1
        self._count = 0

    def append(self, item: Any) -> None:
        if self._count % self._stride == 0:
            self._kept.append(item)
            if len(self._kept) > self._capacity:
                self._kept = self._kept[::2]
                self._stride *= 2
        self._latest = item
        self._count += 1

    def __iter__(self) -> Iterator[Any]:
        yield from self._kept
        if self._kept and self._kept[-1] is not self._latest:
            yield self._latest

    def __len__(self) -> int:
        """How many were appended, kept or not."""
        return self._count


class History:
    def __init__(self) -> None:
        self._many: dict[Any, Thinned] = {}
        self._single: dict[type[Observation], Observation] = {}
        self._absent: dict[type[Observation] | Role, str] = {}

    def add(self, observation: Observation) -> None:
        match observation:
            case Absent():
                self._absent[observation.what] = observation.reason
            case Frame():
                self._append(observation.role, observation, FRAME_CAPACITY)
            case _ if isinstance(observation, SINGLE):
                self._single[type(observation)] = observation
            case _:
                self._append(type(observation), observation, CAPACITY)

    def _append(self, key: Any, observation: Observation, capacity: int) -> None:
        self._many.setdefault(key, Thinned(capacity)).append(observation)

    def has(self, what: type[Observation] | Role) -> bool:
        return what in self._many or what in self._single

    def why_absent(self, what: type[Observation] | Role) -> str | None:
        return self._absent.get(what)

    def many(self, key: Any) -> list[Any]:
        return list(self._many.get(key, ()))

    def count(self, key: Any) -> int:
        return len(self._many.get(key, ()))

    def single(self, kind: type[Kind]) -> Kind | None:
        found = self._single.get(kind)
        return found if isinstance(found, kind) else None


@dataclass(frozen=True)
class Tensor:
    """One tensor of a role at its latest step, with its course over the steps."""

    path: str
    statistics: Statistics
    steps: tuple[int, ...]
    rms_over_steps: tuple[float, ...]

    @property
    def rms(self) -> float:
        return self.statistics.rms

    @property
    def series(self) -> Series:
        return Series(self.path, tuple(float(s) for s in self.steps), self.rms_over_steps)


class Seen:
    """What a check may look at. It cannot tell where the observations came from."""

    def __init__(self, history: History) -> None:
        self._history = history

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Every kept observation of a repeated kind (Batch, Step, LossCall, Units, Failure, …), oldest first."""
        return self._history.many(kind)

    def count(self, kind: type[Observation] | Role) -> int:
        """How many came by, thinned ones included."""
        return self._history.count(kind)

    def one(self, kind: type[Kind]) -> Kind:
        """The observation of a kind that exists once: Architecture, Settings, any Trial. Name it in `reads`."""
        found = self._history.single(kind)
        if found is None:
            raise LookupError(f"{kind.__name__} was not observed; a check that needs it must name it in `reads`")
        return found

    def maybe(self, kind: type[Kind]) -> Kind | None:
        return self._history.single(kind)

    def frames(self, role: Role) -> list[Frame]:
        return self._history.many(role)

    def latest(self, role: Role) -> list[Tensor]:
        """The tensors of a role at the latest step, in the order of the model."""
        return self._tensors(role, -1)

    def first(self, role: Role) -> list[Tensor]:
        """The same at the first step that was seen."""
        return self._tensors(role, 0)

    def _tensors(self, role: Role, which: int) -> list[Tensor]:
        frames = self.frames(role)
        if not frames:
            return []
        courses: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for frame in frames:
            for path, rms in zip(frame.paths, rms_of(frame.table).tolist(), strict=True):
                courses[path].append((frame.step, rms))
        tensors = []
        for path, statistics in frames[which].statistics().items():
            steps, course = zip(*courses[path], strict=True)
            tensors.append(Tensor(path, statistics, steps, course))
        return tensors

    def batches(self, split: Split) -> list[Batch]:
        return [b for b in self.all(Batch) if b.split is split]

    def features(self, split: Split) -> list[Statistics]:
        """Per-feature statistics merged over the batches of a split; empty when there are none."""
        tables = [b.features for b in self.batches(split) if b.features is not None]
        tables = [t for t in tables if t.shape == tables[0].shape]
        if not tables:
            return []
        total = np.array(tables[0])
        for table in tables[1:]:
            total = merge(total, table)
        return [Statistics.from_row(row) for row in total]

    def labels(self, split: Split) -> dict[int, int]:
        """Class counts over all batches of a split; empty when the target is not one class per sample."""
        counts: dict[int, int] = defaultdict(int)
        for batch in self.batches(split):
            for label, count in (batch.labels or {}).items():
                counts[label] += count
        return dict(counts)

    def whole_targets(self, split: Split) -> dict[int, int]:
        """How often each whole number stands in a one-column target, whatever its dtype; empty when there are others."""
        counts: dict[int, int] = defaultdict(int)
        for batch in self.batches(split):
            if batch.whole_targets is None:
                return {}
            for value, count in batch.whole_targets.items():
                counts[value] += count
        return dict(counts)

    def target_statistics(self, split: Split) -> Statistics | None:
        rows = [b.target.statistics.to_row() for b in self.batches(split) if b.target is not None]
        if not rows:
            return None
        total = rows[0]
        for row in rows[1:]:
            total = merge(total, row)
        return Statistics.from_row(total)
