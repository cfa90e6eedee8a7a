"""What a user asked to be guarded against in a running training, and the alarms that come of it."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sleuth.core.contract.expectation import Expect
from sleuth.core.contract.scene import StoredArray
from sleuth.core.finding import Finding
from sleuth.core.observation import Observation


@dataclass(frozen=True)
class Draft:
    """A scene that was copied and is not written yet. `arrays` may take its time: it is called off the training thread."""

    facts: dict[str, Any]
    arrays: Callable[[], Mapping[str, StoredArray]]
    size: int  # bytes


@dataclass(frozen=True)
class Alarm:
    """Raised on the training thread, before the optimiser writes."""

    name: str  # of the check that will find it; "" for what the user asserted
    step: int
    message: str
    observations: tuple[Observation, ...] = ()
    draft: Draft | None = None
    finding: Finding | None = None  # where a check has found it already
    asserted: bool = False  # the user asked for this one in particular
    remarks: tuple[str, ...] = ()  # what could not be found out


@dataclass(frozen=True)
class Act:
    """What the user wants to happen; it may raise. `waits`: only when a gradient that is not finite is about to be used."""

    do: Callable[[], None]
    waits: bool = False


def _nothing_to_do(alarm: Alarm) -> Act | None:
    return None


@dataclass(frozen=True)
class Guard:
    every_gradient: bool = False  # else a few speak for all
    every_activation: bool = False
    expectations: Mapping[str, Expect] = field(default_factory=dict)  # by a pattern of layer paths
    room: Callable[[], int] = lambda: 0  # bytes that a scene may take now; 0: none is kept
    tell: Callable[[Alarm], Act | None] = _nothing_to_do
    asked: deque[Finding] = field(default_factory=deque)  # found by checks: they wait for the next step
