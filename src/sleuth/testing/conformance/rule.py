"""What a rule is, and the training that rules try adapters on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.adapter import Adapter, Bench
from sleuth.core.subject import Parts, Subject, take_apart
from sleuth.testing.kit import Kit

FEATURES, HIDDEN, CLASSES, SAMPLES = 12, 8, 3, 24


@dataclass(frozen=True)
class Rule:
    """Named after what it asserts; it applies to adapters that have the capability."""

    name: str
    capability: type
    run: Callable[[Adapter, Kit], None]

    def applies(self, adapter: Adapter) -> bool:
        return isinstance(adapter, self.capability)


def rule(capability: type) -> Callable[[Callable[[Adapter, Kit], None]], Rule]:
    def wrap(run: Callable[[Adapter, Kit], None]) -> Rule:
        return Rule(run.__name__, capability, run)

    return wrap


def native(kit: Kit, array: np.ndarray) -> Any:
    """The array as the framework's own loader hands it out."""
    rows = np.arange(len(array))
    return next(iter(kit.loader(array, rows, batch_size=max(len(array), 1), shuffle=False)))[0]


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(SAMPLES, FEATURES)).astype(np.float32), rng.integers(0, CLASSES, SAMPLES)


def subject(kit: Kit, optimiser: str = "sgd", lr: float = 0.1, **options: float) -> Subject:
    model = kit.mlp(FEATURES, HIDDEN, CLASSES)
    steps = kit.optimiser(model, optimiser, lr=lr, **options)
    return Subject(model, kit.loader(*data(), batch_size=SAMPLES), kit.loss("cross-entropy"), steps)


def first_batch(given: Subject) -> Parts:
    return take_apart(next(iter(given.train)))


@contextmanager
def benched(adapter: Adapter, kit: Kit, **options: Any) -> Iterator[tuple[Bench, Parts]]:
    given = subject(kit, **options)
    with adapter.bench(given) as bench:  # type: ignore[attr-defined]
        bench.set_training(True)
        yield bench, first_batch(given)


def weights(adapter: Adapter, bench: Bench) -> dict[str, np.ndarray]:
    return {path: np.array(adapter.values(bench.parameter(path))) for path in bench.paths()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)
