"""Keeping and putting back: what modules and optimisers hold, and random states."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import MultiOptimizer, Optimizer

from sleuth.adapters.listening.patches import put_back
from sleuth.core.runtime.randomness import random_preserved
from sleuth.core.subject import Subject


def random_key() -> int:
    """The state of MLX's generator as the seed that leads to it: a key is the two halves of one."""
    high, low = np.array(mx.random.state[0]).tolist()
    return int(high) << 32 | int(low)


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    key = random_key()
    modules = [(m, m._training) for m in subject.model.modules()]
    try:
        with random_preserved((subject.train, subject.validation), closed=(mx.array, nn.Module)):
            yield
    finally:
        mx.random.seed(key)
        for module, mode in modules:
            module._training = mode


@dataclass(frozen=True)
class Snapshot:
    modules: list[tuple[nn.Module, dict[str, Any], dict[str, Any]]]
    optimisers: list[tuple[Optimizer, dict[str, Any]]]
    python: Any
    numpy: Any
    key: int


def snapshot(modules: Sequence[nn.Module], optimiser: Optimizer | None) -> Snapshot:
    kept = [(m, copied(dict(m)), copied(vars(m))) for m in modules]
    return Snapshot(
        kept, [(o, copied(vars(o))) for o in single(optimiser)], random.getstate(), np.random.get_state(), random_key()
    )


def restore(kept: Snapshot) -> None:
    put_back(
        *(partial(_hold, module, items, attributes) for module, items, attributes in kept.modules),
        *(partial(_hold, optimiser, None, attributes) for optimiser, attributes in kept.optimisers),
        partial(random.setstate, kept.python),
        partial(np.random.set_state, kept.numpy),
        partial(mx.random.seed, kept.key),
    )


def _hold(thing: nn.Module | Optimizer, items: dict[str, Any] | None, attributes: dict[str, Any]) -> None:
    items, attributes = copied(items), copied(attributes)  # first: it may raise
    if isinstance(thing, nn.Module):
        dict.clear(thing)
        dict.update(thing, items or {})
    vars(thing).clear()
    vars(thing).update(attributes)


@contextmanager
def as_before(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Afterwards the user's modules and random states are what they were, even if putting them back fails once."""
    kept = snapshot(modules, None)
    try:
        yield
    finally:
        put_back(partial(restore, kept))


def single(optimiser: Any) -> list[Optimizer]:
    """An optimiser and those that it is made of."""
    if optimiser is None:
        return []
    inner = optimiser.optimizers if isinstance(optimiser, MultiOptimizer) else ()
    return [optimiser, *(o for one in inner for o in single(one))]


def copied(tree: Any) -> Any:
    """Containers anew; an array as another one of the same values, since `w[0] = 1` changes an array in place."""
    if isinstance(tree, nn.Module):
        return tree
    if isinstance(tree, mx.array):
        return mx.array(tree)
    if type(tree) is dict:
        return {k: copied(v) for k, v in tree.items()}
    if type(tree) in (list, tuple, set):
        return type(tree)(copied(v) for v in tree)
    return tree
