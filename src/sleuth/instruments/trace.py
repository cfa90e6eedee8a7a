"""The way of the data through a model: what goes into each layer and what comes out, up to where it fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sleuth.core.contract.inspection import Door, Part, Passage, Visit
from sleuth.core.observation import Failure
from sleuth.instruments.given import Given
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result


@dataclass(frozen=True)
class Stop:
    """One call of a layer, in the order of calls."""

    path: str
    kind: str
    depth: int
    inputs: tuple[Door, ...]
    outputs: tuple[Door, ...]
    failed: bool = False


@dataclass(frozen=True)
class Trace(Result):
    name: str
    stops: tuple[Stop, ...]
    unresolved: tuple[str, ...]  # sentences: what has no shape, and why
    failure: Failure | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None

    def to_dict(self) -> dict[str, Any]:
        return {**plain(self), "ok": self.ok}

    def plot(self) -> Any:
        from sleuth.instruments.trace_view import draw

        return draw(self)

    def __str__(self) -> str:
        from sleuth.instruments.trace_view import text

        return text(self)


def trace(model: Any, inputs: Any, *, dtype: str | None = None) -> Trace:
    """Shapes and dtypes at both ends of every layer; where it fails, the layer, what it takes, what it gets and what to do.

    `inputs` as for `sleuth.summary`. The pass runs on a copy, in the mode that the model is in: a layer that fails only while
    training, such as a norm on a batch of one, is met.
    """
    given = Given(model, inputs, dtype)
    parts = {part.path: part for part in given.inspects.parts(given.model)}
    passed = given.inspects.passage(given.model, given.required(), as_is=True)
    stops = tuple(_stop(visit, passed, parts) for visit in passed.visits)
    return Trace(given.name, stops, tuple(_unresolved(parts, stops, passed)), passed.failure)


def _stop(visit: Visit, passed: Passage, parts: dict[str, Part]) -> Stop:
    depth, above = 0, visit.parent
    while above is not None:
        depth, above = depth + 1, passed.visits[above].parent
    failed = not visit.finished and passed.failure is not None
    return Stop(visit.path, parts[visit.path].kind, depth, visit.inputs, visit.outputs, failed)


def _unresolved(parts: dict[str, Part], stops: tuple[Stop, ...], passed: Passage) -> Iterator[str]:
    seen = {stop.path for stop in stops}
    for stop in stops:
        if not stop.failed and not stop.outputs:
            yield f"{stop.path or 'the model'} returns nothing"
        elif any(door.shape is None for door in stop.outputs):
            yield f"{stop.path or 'the model'} returns {stop.outputs[0].what}, which holds no array"
    for part in parts.values():
        if part.path in seen or part.same_as is not None or not part.parameters:
            continue
        holder = parts.get(part.path.rpartition(".")[0])
        if holder is not None and holder.family == "attention":  # it reads the weights of its part without calling it
            continue
        if part.lazy:
            yield f"{part.path} is lazy and was not reached: its parameters have no shape"
        elif passed.failure is None:
            yield f"{part.path} was not called"
