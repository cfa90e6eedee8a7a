"""Looking into a backward that was written by hand: activations taken as straight lines, and the line behind a gradient."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Bypass
from sleuth.core.location import Location, locate
from sleuth.core.runtime.place import is_users
from sleuth.core.runtime.tree import map_arrays
from sleuth.core.subject import Parts


@dataclass
class Activation:
    name: str
    before: np.ndarray
    after: np.ndarray
    location: Location | None


@dataclass
class Track:
    """The activations of one forward pass, in order. `straight`: those that pass changes on as they are."""

    seen: list[Activation] = field(default_factory=list)
    straight: frozenset[int] = frozenset()
    recording: bool = True
    count: int = 0

    def passed(self, name: str, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        number, self.count = self.count, self.count + 1
        if self.recording:
            self.seen.append(Activation(name, before.copy(), after.copy(), _line()))
        elif number in self.straight and number < len(self.seen) and self.seen[number].before.shape == before.shape:
            return np.asarray(self.seen[number].after + (before - self.seen[number].before))
        return after


class Followed(np.ndarray):
    """An array whose way through NumPy's functions is followed. `origin`: what it is made of, on the way to a sigmoid or ReLU."""

    track: Track
    origin: tuple[str, np.ndarray] | None

    def __array_finalize__(self, source: Any) -> None:
        self.track = getattr(source, "track", None)  # type: ignore[assignment]
        self.origin = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        track = next(i.track for i in inputs if isinstance(i, Followed))
        plain = [_plain(i) for i in inputs]
        if "out" in options:
            options["out"] = tuple(_plain(o) for o in options["out"])
        result = getattr(ufunc, method)(*plain, **options)
        if method != "__call__" or not isinstance(result, np.ndarray) or track is None:
            return result if not isinstance(result, np.ndarray) else follow(result, track)
        origin = _origin(ufunc.__name__, inputs, plain)
        if origin is not None and origin[0] in ("tanh", "relu", "sigmoid"):
            return follow(track.passed(origin[0], origin[1], result), track)
        made = follow(result, track)
        made.origin = origin
        return made

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """np.dot and others make a new array, which knows of nothing."""
        result = super().__array_function__(function, types, args, options)
        if isinstance(result, Followed) and result.track is None:
            result.track = self.track
        return result


def follow(array: np.ndarray, track: Track) -> Followed:
    made = np.asarray(array).view(Followed)
    made.track = track
    return made


def _plain(thing: Any) -> Any:
    return thing.view(np.ndarray) if isinstance(thing, Followed) else thing


def _origin(name: str, inputs: tuple[Any, ...], plain: list[Any]) -> tuple[str, np.ndarray] | None:
    """tanh(z), maximum(z, 0), z * (z > 0) and 1 / (1 + exp(-z)), however they are spread over lines."""
    origins = [getattr(i, "origin", None) for i in inputs]
    numbers = [p for p in plain if np.ndim(p) == 0]
    known = next((o for o in origins if o is not None), None)
    if name == "tanh":
        return "tanh", plain[0]
    if name == "maximum" and numbers == [0]:
        return "relu", plain[0] if np.ndim(plain[0]) else plain[1]
    if name == "greater" and numbers == [0]:
        return "positive", plain[0]
    if (
        name == "multiply"
        and known is not None
        and known[0] == "positive"
        and any(p is known[1] or _same(p, known[1]) for p in plain)
    ):
        return "relu", known[1]
    if name == "negative":
        return "negative", plain[0]
    if known is None:
        return None
    ways = {
        ("exp", "negative"): "exp",
        ("add", "exp"): "one-plus",
        ("divide", "one-plus"): "sigmoid",
        ("reciprocal", "one-plus"): "sigmoid",
    }
    step = ways.get((name, known[0]))
    if step is None or (name in ("add", "divide") and numbers != [1]):
        return None
    return step, known[1]


def _same(one: Any, other: np.ndarray) -> bool:
    return isinstance(one, np.ndarray) and one.shape == other.shape and np.shares_memory(one, other)


def _line() -> Location | None:
    frame = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return locate(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def bypasses(loss: Callable[[Parts], float], batch: Parts) -> list[Bypass]:
    """Each activation alone, then all of them. The loss is evaluated once, where the weights now are."""
    track = Track()

    def watched(array: np.ndarray) -> Any:
        return follow(array, track) if array.dtype.kind == "f" else array

    inputs = map_arrays(batch.inputs, watched, lambda a: isinstance(a, np.ndarray))
    raw = (inputs, batch.target) if isinstance(batch.raw, tuple | list) and len(batch.raw) == 2 else batch.raw
    followed = Parts(inputs, batch.target, raw)
    loss(followed)
    track.recording = False

    def straightened(numbers: frozenset[int]) -> Callable[[], float]:
        def ask() -> float:
            track.count, track.straight = 0, numbers
            return float(loss(followed))

        return ask

    found = [Bypass(a.name, a.location, straightened(frozenset([i]))) for i, a in enumerate(track.seen)]
    if len(found) > 1:
        every = frozenset(range(len(found)))
        found.append(Bypass("every activation", track.seen[0].location, straightened(every)))
    return found
