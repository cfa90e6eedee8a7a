"""A signal on its way through the turns of a recurrence: does it grow or fade, turn by turn?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import Architecture
from sleuth.core.reading.flow import WEIGHTY
from sleuth.core.reading.lines import line_of
from sleuth.core.trial import Flow, Operation, TimeReach

# How well a straight line through the logarithms of the sizes fits them (correlation).
STEADY = 0.9
# Of the positions of a sequence: a weight that is at work at so many of them goes through it turn by turn.
TURNS = 0.5


@dataclass(frozen=True)
class Recurrent:
    """What carries a state from one position to the next."""

    where: str
    location: Location | None


def ratio(reach: TimeReach) -> float:
    """What the first positions count, against what the last do; 1 where that does not grow or fade turn by turn."""
    sizes = np.maximum(np.array(reach.sizes), np.finfo(float).tiny)
    if not np.isfinite(sizes).all() or max(reach.sizes) <= 0:
        return 1.0
    logs = np.log(sizes)
    if logs.std() == 0 or abs(np.corrcoef(reach.positions, logs)[0, 1]) < STEADY:
        return 1.0
    quarter = max(1, len(sizes) // 4)
    return float(np.exp(np.median(logs[:quarter]) - np.median(logs[-quarter:])))


def recurrent(seen: Seen, reach: TimeReach) -> Recurrent | None:
    flow, architecture = seen.maybe(Flow), seen.maybe(Architecture)
    layers = architecture.layers if architecture is not None else ()
    layer = next((x for x in layers if x.family == "recurrent" and x.settings.get("batch_first") is not False), None)
    if layer is not None:
        return Recurrent(layer.path, layer.location)
    turns: dict[str, list[int]] = {}
    for index, operation in enumerate(flow.operations if flow is not None else ()):
        if operation.family in WEIGHTY and operation.parameters:
            turns.setdefault(operation.parameters[0], []).append(index)
    for path, calls in turns.items():
        if flow is not None and len(calls) >= TURNS * reach.length and _feeds(flow.operations, calls[-2], calls[-1]):
            return Recurrent(path, _line(seen, path, flow.operations[calls[-1]]))
    return None


def _feeds(operations: Sequence[Operation], first: int, last: int) -> bool:
    """Does the one flow into the other?"""
    waiting, met = [last], {last}
    while waiting:
        for source in operations[waiting.pop()].sources:
            if source == first:
                return True
            if source > first and source not in met:
                met.add(source)
                waiting.append(source)
    return False


def _line(seen: Seen, path: str, operation: Operation) -> Location | None:
    """Of a weight that the user made: where. Of a layer: where it is at work."""
    architecture = seen.maybe(Architecture)
    weight = next((p for p in architecture.parameters if p.path == path), None) if architecture is not None else None
    lone = weight is not None and weight.family in ("other", "container")
    return (line_of(seen, path) if lone else None) or operation.location
