"""The plain numbers in what a call was given."""

from collections.abc import Iterator
from typing import Any


def numbers_in(thing: Any) -> Iterator[float]:
    if isinstance(thing, int | float) and not isinstance(thing, bool):
        yield thing
    elif isinstance(thing, slice):
        yield from numbers_in((thing.start, thing.stop, thing.step))
    elif isinstance(thing, dict):
        yield from numbers_in(tuple(thing.values()))
    elif isinstance(thing, list | tuple) and not hasattr(thing, "number"):  # a slot is no number
        for part in thing:
            yield from numbers_in(part)
