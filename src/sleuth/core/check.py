"""A check: a pure function of what was seen to evidence, with typed metadata."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from sleuth.core.finding import Series
from sleuth.core.history import Seen
from sleuth.core.location import Location
from sleuth.core.observation import Observation, Role
from sleuth.core.stage import Confidence, Severity, Stage

__all__ = ["Check", "Evidence", "NotExamined", "Seen", "check"]

Readable = type[Observation] | Role


@dataclass(frozen=True)
class Evidence:
    """One place where the illness shows. Unset severity and confidence are the check's own."""

    summary: str
    where: str | None = None
    location: Location | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    severity: Severity | None = None
    confidence: Confidence | None = None
    fix: str | None = None  # when this case asks for something more concrete than the check's text
    first_step: int | None = None
    last_step: int | None = None
    strength: float = 1.0


@dataclass(frozen=True)
class NotExamined:
    reason: str


@dataclass(frozen=True)
class Check:
    code: str
    name: str
    stage: Stage
    severity: Severity
    confidence: Confidence
    reads: tuple[Readable | tuple[Readable, ...], ...]
    explains: tuple[str, ...]
    title: str
    why: str
    fix: str
    run: Callable[..., Iterable[Evidence | NotExamined]]
    symptoms: tuple[str, ...] = ()  # what people type who have it, the likeliest words first
    decided_by: str = ""  # the measurement that settles it, in one line

    @property
    def thresholds(self) -> dict[str, Any]:
        """The keyword parameters that `[tool.sleuth]` may override, with their defaults."""
        parameters = inspect.signature(self.run).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def check(
    *,
    code: str,
    stage: Stage,
    severity: Severity,
    reads: tuple[Readable | tuple[Readable, ...], ...],
    title: str,
    why: str,
    fix: str,
    explains: tuple[str, ...] = (),
    confidence: Confidence = Confidence.LIKELY,
    symptoms: tuple[str, ...] = (),
    decided_by: str = "",
) -> Callable[[Callable[..., Iterable[Evidence | NotExamined]]], Check]:
    """Turn a function into a `Check` that is named after it."""

    def wrap(run: Callable[..., Iterable[Evidence | NotExamined]]) -> Check:
        name = run.__name__.replace("_", "-")
        text = {"title": title, "why": _one_paragraph(why), "fix": _one_paragraph(fix), "decided_by": _one_paragraph(decided_by)}
        return Check(code, name, stage, severity, confidence, reads, explains, run=run, symptoms=symptoms, **text)

    return wrap


def _one_paragraph(text: str) -> str:
    return " ".join(dedent(text).split())
