"""What is ill, where, and the numbers that prove it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sleuth.core.location import Location
from sleuth.core.stage import Confidence, Severity, Stage


@dataclass(frozen=True)
class Series:
    """A curve to draw."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Finding:
    code: str
    name: str
    stage: Stage
    severity: Severity
    confidence: Confidence
    title: str
    summary: str
    why: str
    fix: str
    where: str | None = None
    location: Location | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    first_step: int | None = None  # None: before training began
    last_step: int | None = None
    times: int = 1
    strength: float = 1.0  # how far beyond its threshold, for ranking among equals
    explained_by: str | None = None
