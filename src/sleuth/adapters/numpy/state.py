"""Keeping and putting back the state of objects: whatever arrays, attributes, lists and generators they reach."""

import random
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.adapters.common.manual_loop.loop_scope import CLOSED
from sleuth.core.runtime.randomness import GENERATORS, put_state, random_preserved, state_of
from sleuth.core.subject import Subject


@contextmanager
def preserved(subject: Subject) -> Iterator[None]:
    with random_preserved((subject.train, subject.validation, subject.model, subject.loss, subject.optimizer)):
        yield


@dataclass(frozen=True)
class Snapshot:
    """Identities stay: objects get their attributes back, arrays their values in place."""

    arrays: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    attributes: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    containers: list[tuple[Any, Any]] = field(default_factory=list)
    generators: list[tuple[Any, Any]] = field(default_factory=list)
    python: Any = None
    numpy: Any = None


def remember(*things: Any, largest: int | None = None) -> Snapshot:
    """`largest`: bytes of an array; those beyond are taken to stay as they are."""
    kept = Snapshot(python=random.getstate(), numpy=np.random.get_state())
    for thing in reach(*things):
        if isinstance(thing, GENERATORS):
            kept.generators.append((thing, state_of(thing)))
        elif isinstance(thing, np.ndarray):
            if largest is not None and thing.nbytes > largest:
                continue
            kept.arrays.append((thing, thing.copy()))
        elif isinstance(thing, list | dict | set | deque):
            kept.containers.append((thing, thing.copy()))
        if isinstance(attributes := getattr(thing, "__dict__", None), dict):
            kept.attributes.append((thing, dict(attributes)))
    return kept


def put_back(kept: Snapshot) -> None:
    for thing, attributes in kept.attributes:
        thing.__dict__.clear()
        thing.__dict__.update(attributes)
    for container, content in kept.containers:
        container.clear()
        container.extend(content) if isinstance(container, list | deque) else container.update(content)
    for array, values in kept.arrays:
        if array.flags.writeable:
            array[...] = values
    for generator, state in kept.generators:
        put_state(generator, state)
    random.setstate(kept.python)
    np.random.set_state(kept.numpy)


def reach(*things: Any) -> Iterator[Any]:
    """Every object that holds state, once, from these on: attributes, lists, dicts and bound methods are followed."""
    waiting = list(things)
    seen: dict[int, Any] = {}
    while waiting:
        thing = waiting.pop()
        thing = getattr(thing, "__self__", thing)
        if id(thing) in seen or (isinstance(thing, CLOSED) and not isinstance(thing, np.ndarray)):
            continue
        seen[id(thing)] = thing
        yield thing
        if isinstance(thing, (np.ndarray, *GENERATORS)):
            continue
        if isinstance(thing, dict):
            waiting += thing.values()
        elif isinstance(thing, list | tuple | set | deque):
            waiting += thing
        waiting += getattr(thing, "__dict__", {}).values()


def has_views(parameters: list[np.ndarray], *things: Any) -> bool:
    """Do other arrays look into the parameters' memory, as slices of one flat vector do? A copy would tear them apart."""
    own = {id(a) for a in parameters}
    spans = sorted((*_span(a), id(a) in own) for a in reach(parameters, *things) if isinstance(a, np.ndarray) and a.size)
    for i, (_, end, one) in enumerate(spans):
        for start, _, other in spans[i + 1 :]:
            if start >= end:
                break
            if one or other:
                return True
    return False


def _span(array: np.ndarray) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    steps = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    return start + sum(min(s, 0) for s in steps), start + sum(max(s, 0) for s in steps) + array.itemsize
