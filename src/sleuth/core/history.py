"""What was seen so far, in bounded memory, and the view of it that checks get."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from sleuth.core.finding import Series
from sleuth.core.observation import (
    Absent,
    Architecture,
    Batch,
    Call,
    Frame,
    Observation,
    Role,
    Settings,
    Split,
    Step,
)
from sleuth.core.statistics import Statistics, merge, rms_of
from sleuth.core.trial import Trial

Kind = TypeVar("Kind", bound=Observation)

# Enough for a curve on a screen; beyond it every second entry is dropped and the stride doubles.
CAPACITY = 2048
# Frames are tables of all tensors; this many cover a short trial in full and a long run coarsely.
FRAME_CAPACITY = 256

SINGLE = (Architecture, Settings, Trial)

# Of whom an observation speaks, where several take turns: the number of an optimiser, the first of the tensors.
Group = int | str | None


def group_of(observation: Observation) -> Group:
    match observation:
        case Step():
            return observation.optimiser
        case Frame():
            return observation.paths[0] if observation.paths else None
    return None


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

    def recall(self, count: int, read: Callable[[int], Any]) -> None:
        """As if the entries 0 … count-1 had been appended; only those that stay are read."""
        while -(-count // self._stride) > self._capacity:
            self._stride *= 2
        self._kept = [read(place) for place in range(0, count, self._stride)]
        self._count = count
        if count:
            self._latest = self._kept[-1] if (count - 1) % self._stride == 0 else read(count - 1)


class History:
    """Steps and frames of several optimisers are thinned apart: where two take turns, every second entry is the same one's."""

    def __init__(self) -> None:
        self._many: dict[Any, dict[Group, Thinned]] = {}
        self._single: dict[type[Observation], Observation] = {}
        self._absent: dict[type[Observation] | Role, str] = {}

    def add(self, observation: Observation) -> None:
        match observation:
            case Step():  # by far the most
                self._thinned(Step, observation.optimiser).append(observation)
            case Absent():
                self._absent[observation.what] = observation.reason
            case Frame():
                self._thinned(observation.role, group_of(observation)).append(observation)
            case _ if isinstance(observation, SINGLE):
                self._single[type(observation)] = observation
            case _:
                self._thinned(type(observation), group_of(observation)).append(observation)

    def recall(self, what: type[Observation] | Role, group: Group, count: int, read: Callable[[int], Observation]) -> None:
        """As if `count` observations of a kind or role had been added; only those that stay are read, by their place."""
        if isinstance(what, type) and issubclass(what, Absent):
            for place in range(count):
                self.add(read(place))
        elif isinstance(what, type) and issubclass(what, SINGLE):
            self.add(read(count - 1))
        else:
            self._thinned(what, group).recall(count, read)

    def _thinned(self, what: type[Observation] | Role, group: Group) -> Thinned:
        groups = self._many.setdefault(what, {})
        if group not in groups:
            groups[group] = Thinned(FRAME_CAPACITY if isinstance(what, Role) else CAPACITY)
        return groups[group]

    def has(self, what: type[Observation] | Role) -> bool:
        return what in self._many or what in self._single

    def why_absent(self, what: type[Observation] | Role) -> str | None:
        return self._absent.get(what)

    def many(self, key: Any) -> list[Any]:
        groups = list(self._many.get(key, {}).values())
        found = [item for group in groups for item in group]
        return found if len(groups) < 2 else sorted(found, key=lambda item: int(item.step))

    def count(self, key: Any) -> int:
        return sum(len(group) for group in self._many.get(key, {}).values())

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

    def why_absent(self, kind: type[Observation] | Role) -> str | None:
        """The reason that was given for it, for a check that can do without."""
        return self._history.why_absent(kind)

    def frames(self, role: Role) -> list[Frame]:
        return self._history.many(role)

    def before_steps(self, observed: Sequence[Kind]) -> list[Kind]:
        """Of Units or Frames, those of the model as it was handed over: of a loop that was listened to, the first look alone."""
        if not self._history.has(Call) or not observed:
            return list(observed)
        first = min(getattr(o, "step", 0) for o in observed)
        return [o for o in observed if getattr(o, "step", 0) == first]

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
