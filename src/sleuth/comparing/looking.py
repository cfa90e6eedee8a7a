"""Both models run, in their own precision and in float64, so that rounding can be told from difference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sleuth.comparing.distance import NOISES, ROUNDINGS, apart, values_apart
from sleuth.comparing.heard import Value, listen
from sleuth.comparing.side import Side
from sleuth.core.contract.adapter import Bench
from sleuth.core.errors import Unsupported

T = TypeVar("T")

# A float64 copy that says something else than the model does not speak for it.
ANOTHER = 0.05


@dataclass(frozen=True)
class Wide:
    """A side's bench that computes in float64; `reason` says why there is none."""

    bench: Bench | None
    reason: str = ""


def widened(side: Side) -> Wide:
    if side.settings.parameter_dtype == "float64":
        return Wide(side.bench)
    side.bench.set_training(True)
    try:
        bench = side.bench.double()
        side.as_compared(bench)
        side.as_compared()
        told = [apart(a, b) for a, b in zip(side.outputs(), side.outputs(bench), strict=True)]
    except Unsupported as reason:
        return Wide(None, str(reason))
    except Exception as error:  # the user's code may insist on its own precision
        return Wide(None, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    finally:
        side.as_compared()
    return Wide(bench) if max(told, default=0.0) < ANOTHER else Wide(None, "its float64 copy answers otherwise")


@dataclass(frozen=True)
class Look:
    """What one side says: as clean of rounding as it can be had, and how much rounding moves it."""

    values: tuple[Value, ...]
    noise: dict[str, float]  # by path


def look(side: Side, wide: Wide) -> Look:
    plain = listen(side, side.bench)
    if wide.bench is not None:
        clean = listen(side, wide.bench)
        return Look(tuple(clean), _noise(plain, clean))
    moved = jittered(side, lambda: listen(side, side.bench))
    return Look(tuple(plain), {path: 2 * n for path, n in _noise(plain, moved).items()})


def _noise(one: Sequence[Value], other: Sequence[Value]) -> dict[str, float]:
    by_path = {value.path: value for value in one}
    same = [(v, by_path[v.path]) for v in other if v.path in by_path and by_path[v.path].size == v.size]
    return {value.path: values_apart(value, plain)[0] for value, plain in same}


def jittered(side: Side, measure: Callable[[], T]) -> T:
    """With every weight moved by about one rounding error: what comes out moves as far as rounding moves it."""
    rng = np.random.default_rng(0)
    before = side.bench.snapshot()
    try:
        for path in side.bench.paths():
            values = np.array(side.adapter.values(side.bench.parameter(path)), np.float64)
            side.bench.write(path, values * (1 + side.epsilon * rng.uniform(-1, 1, values.shape)))
        return measure()
    finally:
        side.bench.restore(before)


def explained(epsilon: float, *noises: float) -> float:
    finite = [n for n in noises if np.isfinite(n)]
    return max(ROUNDINGS * epsilon, NOISES * max(finite, default=0.0))
