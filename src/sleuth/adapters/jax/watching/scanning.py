"""Training steps that are the rounds of one `lax.scan`: what each round tells leaves the loop beside its own result."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sleuth.adapters.jax.watching.channel import Channel, Collector
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.naming import leaves_of


def make_scan(plain: Callable[..., Any]) -> Callable[..., Any]:
    def scan(f: Any, init: Any, xs: Any = None, *args: Any, **options: Any) -> Any:
        outer = HEARING.collector
        if outer is None or HEARING.busy:
            return plain(f, init, xs, *args, **options)
        looks_inside = HEARING.looks_inside

        def body(carry: Any, x: Any) -> Any:
            HEARING.collector = inner = Collector(leaves_of((carry, x)))
            HEARING.looks_inside = looks_inside  # a body may be traced more than once
            try:
                result = f(carry, x)
                outer.optimiser = outer.optimiser or inner.optimiser
                # Every round's: what is measured on the device is small. What was said inside has nobody to listen.
                channel = replace(inner.channel(result, here=False), telling=None, story=None)
                return result[0], (result[1], channel)
            finally:
                HEARING.collector = outer

        carry, (ys, channel) = plain(body, init, xs, *args, **options)
        _told(outer, channel, (carry, ys))
        return carry, ys

    return scan


def _told(outer: Collector, channel: Channel, result: Any) -> None:
    if channel.parts:
        places = {path: leaf for path, leaf in leaves_of(result)}
        outer.scanned(channel, tuple(None if part.loss is None else places.get(part.loss) for part in channel.parts))


@dataclass(frozen=True)
class Round:
    """One number of an array that may not be computed yet."""

    array: Any
    number: int
    scalar: bool = False  # the array may be that of a loop inside a loop

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rounds = np.asarray(self.array)
        return np.asarray((rounds.reshape(-1) if self.scalar else rounds)[self.number], dtype=dtype)

    def is_ready(self) -> bool:
        return bool(self.array.is_ready())


def one_of(value: Any, number: int, *, scalar: bool = False) -> Any:
    """What is measured is small: it is read once it is there."""
    return None if value is None else Round(value, number, scalar)
