"""The report: what was found, what is clear, what could not be examined and why."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.core.contract.scene import Scene
from sleuth.core.diagnosis import Culprit
from sleuth.core.errors import UnusableInput
from sleuth.core.finding import Finding
from sleuth.core.location import Location
from sleuth.core.observation import Role
from sleuth.core.recording.recording import Curve, Recording, Table, curves_as_dataframe
from sleuth.core.stage import Severity, Stage

SCHEMA = 1


@dataclass(frozen=True)
class Report:
    """`views` turn it into text: by file ending, and "terminal" for the screen. Whoever builds the report hands them in."""

    source: str
    framework: str | None
    subject: str
    steps: int
    seconds: float
    culprits: tuple[Culprit, ...]
    findings: tuple[Finding, ...]
    clear: tuple[str, ...]
    not_examined: Mapping[str, str]
    ignored: Mapping[str, str]
    stage_of: Mapping[str, Stage]  # of every check that was asked
    examined_anything: bool  # a forward pass or a training step was seen
    overhead: Mapping[str, float] | None = None
    unanswered: str = ""  # why it may not be called healthy, although nothing was found, and what to do: one sentence
    notes: tuple[str, ...] = ()  # what the reader must know: sampling, time that ran out, an interruption
    facts: Mapping[str, Any] = field(default_factory=dict)  # plain facts for the views: shapes, counts, curves
    views: Mapping[str, Callable[["Report"], str]] = field(default_factory=dict, repr=False, compare=False)
    ignored_at: Mapping[str, Location] = field(default_factory=dict)  # of those ignored on the user's own line
    record: Recording | None = field(default=None, repr=False, compare=False)  # of a run: everything, not only what was judged
    drawing: str = field(default="", repr=False, compare=False)  # of the model, as SVG
    remembered: Recording | None = field(default=None, repr=False, compare=False)  # what was judged, of whatever was examined

    @property
    def status(self) -> str:
        if any(f.severity is not Severity.HINT for f in self.findings):
            return "sick"
        return "healthy" if self.examined_anything and not self.unanswered else "unknown"

    def stages(self) -> dict[str, dict[str, int]]:
        """Counts by stage, for the stages that have checks."""
        found = {f.name for f in self.findings}
        table = {}
        for stage in Stage:
            names = [n for n, s in self.stage_of.items() if s is stage]
            if names:
                table[stage.value] = {
                    "clear": sum(n in self.clear for n in names),
                    "found": sum(n in found for n in names),
                    "not_examined": sum(n in self.not_examined for n in names),
                }
        return table

    def asked(self) -> dict[str, list[str]]:
        """The names of all checks that were asked, by stage."""
        return {
            stage: [n for n, s in self.stage_of.items() if s.value == stage]
            for stage in dict.fromkeys(s.value for s in sorted(self.stage_of.values()))
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "status": self.status,
            "unanswered": self.unanswered,
            "source": self.source,
            "framework": self.framework,
            "subject": self.subject,
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "culprits": [_culprit(c) for c in self.culprits],
            "findings": [{**_finding(f), "explained_by": f.explained_by} for f in self.findings],
            "ignored": [{"name": n, "reason": r, "location": _location(self.ignored_at.get(n))} for n, r in self.ignored.items()],
            "clear": list(self.clear),
            "not_examined": [{"name": n, "reason": r} for n, r in self.not_examined.items()],
            "stages": self.stages(),
            "asked": self.asked(),
            "overhead": dict(self.overhead) if self.overhead else None,
            "notes": list(self.notes),
            "facts": _plain(self.facts),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """A page of its own, with charts: it needs nothing from the network."""
        return self.views[".html"](self)

    def to_fragment(self) -> str:
        """For a page around it, as in a notebook: without charts and scripts."""
        return self.views["notebook"](self)

    def to_text(self) -> str:
        return self.views[".txt"](self)

    def save(self, path: str | Path) -> Path:
        """Write the report in the format of the file's ending."""
        path = Path(path)
        if path.suffix == ".json":
            text = self.to_json() + "\n"
        elif path.suffix in self.views:
            text = self.views[path.suffix](self) + "\n"
        else:
            endings = ", ".join([".json", *(e for e in self.views if e.startswith("."))])
            raise UnusableInput(f"a report cannot be saved as {path.name!r}; use one of the endings {endings}.")
        # A name may hold half a character (an undecodable file name): the escape is sound in JSON and readable elsewhere.
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return path

    def curves(self) -> dict[str, Curve]:
        """Of a recorded run, by name: (steps, values) as NumPy arrays. Losses, rates, norms, seconds, and what was logged."""
        return self._record().curves()

    def statistics(self, role: Role | str) -> Table:
        """Of a recorded run: the statistics of all activations, gradients, weights or updates over the steps, as one array."""
        try:
            return self._record().statistics(Role(role))
        except ValueError:
            roles = ", ".join(r.value for r in Role)
            raise UnusableInput(f"there are no statistics of {role!r}; choose one of {roles}.") from None

    @property
    def scenes(self) -> tuple[int, ...]:
        """Of a recorded run: the numbers of the steps that were kept whole because something went wrong in them."""
        return () if self.record is None else self.record.scenes()

    def scene(self, number: int) -> Scene:
        """One of them: batch, weights, random state, …; `sleuth.replay(scene, model)` does it again."""
        return self._record().scene(number)

    def to_dataframe(self) -> Any:
        """The curves of a recorded run as a pandas.DataFrame, one row a step."""
        return curves_as_dataframe(self.curves())

    def _record(self) -> Recording:
        if self.record is None:
            raise UnusableInput("this report is not of a recorded run; sleuth.load(FOLDER) reads one, curves included.")
        return self.record

    def show(self) -> None:
        """Print the report to the terminal."""
        print(self.views["terminal"](self))

    def _repr_html_(self) -> str:
        return self.to_fragment()


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "stage": finding.stage.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "where": finding.where,
        "location": _location(finding.location),
        "title": finding.title,
        "summary": finding.summary,
        "why": finding.why,
        "fix": finding.fix,
        "numbers": _plain(finding.numbers),
        "series": [{"name": s.name, "x": _plain(s.x), "y": _plain(s.y)} for s in finding.series],
        "first_step": finding.first_step,
        "last_step": finding.last_step,
        "times": finding.times,
    }


def _culprit(culprit: Culprit) -> dict[str, Any]:
    symptoms = [s.name for s in culprit.symptoms]
    return {**_finding(culprit.finding), "symptoms": symptoms, "proof": None}


def _location(location: Location | None) -> dict[str, Any] | None:
    return None if location is None else {"file": location.short_file, "line": location.line, "text": location.text}


def _plain(value: Any) -> Any:
    """JSON knows neither NaN nor NumPy: non-finite numbers become null."""
    match value:
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case str() | bool() | None:
            return value
        case list() | tuple():
            return [_plain(v) for v in value]
        case _ if hasattr(value, "tolist"):
            return _plain(value.tolist())
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case _:
            return str(value)
