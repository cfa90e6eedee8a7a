"""Random states, kept and put back: Python's, NumPy's and those of generators that objects hold."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

GENERATORS: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)
# Loader → batch sampler → sampler → generator, or loader → dataset → transform → generator.
DEPTH = 5


@contextmanager
def random_preserved(things: Any, kinds: tuple[type, ...] = (), closed: tuple[type, ...] = ()) -> Iterator[None]:
    """The global states and every generator that `things` hold are the same on every way out."""
    held = [(g, state_of(g)) for g in generators(things, kinds, closed)]
    python, numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for generator, saved in held:
            put_state(generator, saved)
        random.setstate(python)
        np.random.set_state(numpy)


def generators(things: Any, kinds: tuple[type, ...] = (), closed: tuple[type, ...] = ()) -> Iterator[Any]:
    """Random generators a few objects deep. `kinds`: a framework's own, with get_state and set_state; `closed`: not entered."""
    yield from _search(things, DEPTH, set(), GENERATORS + kinds, (np.ndarray, type, *closed))


def _search(thing: Any, depth: int, seen: set[int], kinds: tuple[type, ...], closed: tuple[type, ...]) -> Iterator[Any]:
    if depth < 0 or id(thing) in seen or isinstance(thing, closed):
        return
    seen.add(id(thing))
    if isinstance(thing, kinds):
        yield thing
        return
    # A list of a million samples is not searched: generators live in attributes, not among the data.
    if isinstance(thing, list | tuple):
        children = list(thing[:8])
    elif isinstance(thing, dict):
        children = list(thing.values())[:32]
    else:
        children = list(getattr(thing, "__dict__", {}).values())
    for child in children:
        yield from _search(child, depth - 1, seen, kinds, closed)


def state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.getstate() if isinstance(generator, random.Random) else generator.get_state()


def put_state(generator: Any, saved: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = saved
    elif isinstance(generator, random.Random):
        generator.setstate(saved)
    else:
        generator.set_state(saved)
