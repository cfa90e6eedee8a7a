"""What a probe is, and the bench, data and clock that it works with."""

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import sleuth.probes
from sleuth.core.contract.adapter import Adapter, Bench, Describes
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Architecture, Observation, Role, Split
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts, Subject


class OutOfTime(Exception):
    """The probe's share of the time is used up, or too small for what the message says."""


@dataclass
class Readings:
    """What was read of one split. Batches are kept up to a bound; fingerprints and labels of everything read."""

    split: Split
    batches: list[Parts] = field(default_factory=list)
    kept_bytes: int = 0
    samples: int = 0
    complete: bool = False  # the source was read to its end
    order_is_ours: bool = False  # plain arrays: sleuth chose the batches
    labels: list[np.ndarray] = field(default_factory=list)  # per batch, where the target is one class a sample
    exact: list[np.ndarray] = field(default_factory=list)  # uint64 fingerprints of the inputs, per batch
    rounded: list[np.ndarray] = field(default_factory=list)  # (n, 2): equal in one column means equal up to float noise
    sketches: list[np.ndarray] = field(default_factory=list)  # where near-duplicates are asked for


@dataclass
class Lab:
    """Everything an experiment needs. Random numbers come from `rng`, never from the user's generators."""

    subject: Subject
    adapter: Adapter
    budget_seconds: float
    clock: Callable[[], float] = time.monotonic
    bench_: Bench | None = None
    train: Readings = field(default_factory=lambda: Readings(Split.TRAIN))
    validation: Readings | None = None
    failed: dict[str, str] = field(default_factory=dict)  # "forward", "loss", "backward", … → why
    progress: Callable[[str], None] = lambda text: None
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of checks, where the user has set them
    sketcher: Any = None  # where near-duplicates are asked for
    grows: bool = False  # the model is looked at layer by layer too
    prints: dict[Split, Readings] = field(default_factory=dict)  # fingerprints of whole data sets that are read in bulk
    started: float = 0.0
    probe_deadline: float = float("inf")
    reference: tuple[Adapter, Subject] | None = None  # the same model elsewhere, and who knows it
    rate: float | None = None  # that the training came to run at, where it was seen to rise from another

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def bench(self) -> Bench:
        if self.bench_ is None:
            raise Unsupported(f"the {self.adapter.name} adapter cannot run experiments")
        return self.bench_

    @property
    def batch(self) -> Parts:
        """The batch that single-batch experiments use."""
        if not self.train.batches:
            raise Unsupported("no training batch could be read")
        return self.train.batches[0]

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator with a fixed seed: the same examination gives the same report."""
        return np.random.default_rng(0)

    @cached_property
    def architecture(self) -> Architecture:
        """Of the user's own model, which no experiment touches: described once."""
        if not isinstance(self.adapter, Describes):
            raise Unsupported(f"the {self.adapter.name} adapter cannot describe a model")
        return self.adapter.architecture(self.subject)

    def threshold(self, check: str, name: str) -> float:
        """What the user has set; 0 where that is nothing."""
        return float(self.thresholds.get(check, {}).get(name, 0.0))

    def amount_read(self) -> dict[str, Any]:
        readings = [r for r in (self.train, self.validation) if r is not None and r.samples]
        return {r.split.value: {"samples": r.samples, "complete": r.complete} for r in readings}

    def seconds_left(self) -> float:
        return self.started + self.budget_seconds - self.clock()

    def time_is_up(self) -> bool:
        """Has this probe used up its share? Probes bounded by steps ask between steps."""
        return self.clock() > min(self.probe_deadline, self.started + self.budget_seconds)

    def begin_anew(self) -> None:
        """The whole budget once more."""
        self.started = self.clock()

    def tick(self) -> None:
        if self.time_is_up():
            raise OutOfTime


@dataclass(frozen=True)
class Probe:
    name: str
    title: str
    stage: Stage
    rank: int  # order within the stage
    emits: tuple[type[Observation] | Role, ...]
    needs: tuple[str, ...]
    share: float  # of the time budget
    run: Callable[[Lab], Iterator[Observation]]


def probe(
    *,
    title: str,
    stage: Stage,
    emits: tuple[type[Observation] | Role, ...],
    needs: tuple[str, ...] = (),
    rank: int = 50,
    share: float = 0.1,
) -> Callable[[Callable[[Lab], Iterator[Observation]]], Probe]:
    """Turn a function into a `Probe`. `needs` names what must not have failed before: forward, loss, backward."""

    def wrap(run: Callable[[Lab], Iterator[Observation]]) -> Probe:
        return Probe(run.__name__, title, stage, rank, emits, needs, share, run)

    return wrap


def all_probes() -> list[Probe]:
    """Every probe below this folder's parent, in the order of the stages."""
    found = []
    for info in pkgutil.walk_packages(sleuth.probes.__path__, "sleuth.probes."):
        module = importlib.import_module(info.name)
        found += [value for value in vars(module).values() if isinstance(value, Probe)]
    return sorted(set(found), key=lambda p: (p.stage.rank, p.rank, p.name))
