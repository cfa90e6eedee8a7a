"""What a rule is, and the training that rules try adapters on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Adapter, Bench
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


def close(one: np.ndarray, other: np.ndarray) -> bool:
    """As far as single precision and another order of summation go."""
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-5))


@dataclass(frozen=True)
class Network:
    """A training whose weights are known, with what NumPy computes of its only batch."""

    subject: Subject
    hidden: np.ndarray
    scores: np.ndarray
    back_to_hidden: np.ndarray  # the gradient of the loss by the hidden values


def known_network(kit: Kit) -> Network:
    x, y = data()
    rng = np.random.default_rng(13)
    enter = rng.normal(size=(HIDDEN, FEATURES)).astype(np.float32) / 4
    leave = rng.normal(size=(CLASSES, HIDDEN)).astype(np.float32) / 3
    shift = rng.normal(size=HIDDEN).astype(np.float32)
    layers = kit.linear(FEATURES, HIDDEN), kit.activation("relu"), kit.linear(HIDDEN, CLASSES)
    model = kit.sequential(*layers)
    loader = kit.loader(x, y, batch_size=SAMPLES, shuffle=False)
    kit.set_weights(layers[0], enter, shift)
    kit.set_weights(layers[2], leave, np.zeros(CLASSES, np.float32))
    subject = Subject(model, loader, kit.loss("cross-entropy"), kit.optimiser(model, "sgd", lr=0.1))
    hidden = np.maximum(x @ enter.T + shift, 0)
    scores = hidden @ leave.T
    shares = np.exp(scores - scores.max(1, keepdims=True))
    back = (shares / shares.sum(1, keepdims=True) - np.eye(CLASSES, dtype=np.float32)[y]) / SAMPLES
    return Network(subject, hidden, scores, back @ leave)
