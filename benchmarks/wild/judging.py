"""What a run under sleuth is worth: is the output the same, was it heard, is the first culprit the planted one."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.wild.lists import Fault, Script
from benchmarks.wild.scratch import Outcome

# A line is right when it is at most so far away.
NEAR = 2
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
# Durations and speeds are other numbers in every run, and may be equal in two of them by chance.
TIMES = re.compile(
    r"(?i)(?:time|elapsed|took|ms/batch|it/sec|iter_dt|mfu|runtime|per_second)[^\d\n]{0,12}[\d.e+-]+"
    r"|[\d.]+ ?(?:ms|s|sec|seconds)\b(?:/step)?|\d+:\d\d(?::\d\d)?"
)
# Shorter trainings than this are timed with their start, or the ratio would be noise.
SHORTEST_SECONDS = 1.0
ALARMS = ("error", "warning")
# Reasons that lie in the training itself: it is too short for the check, or has nothing of what the check is about. Every other
# reason is a limit of sleuth. By the words of the report, the only thing a user sees; a new wording counts as a limit.
RULED_OUT = re.compile(
    r"only \d+ steps were seen|validation was seen \d+ times? only|no clipping was|no scheduler's step was|computes on the CPU"
    r"|no metric was logged|no reference was given|how the training is saved was not told|the target is not one class"
    r"|inputs are ids|inputs are not a table|inputs have no features|inputs are not numbers|one value a position"
    r"|no ReLU or other activation|classes are the tokens|it ended as planned|a batch of at least|equal inputs are natural"
    r"|no loss was heard that takes one class|real-valued target|too noisy to tell"
)


def numbers(text: str) -> list[str]:
    return NUMBER.findall(TIMES.sub(" ", text))


def changed_numbers(first: str, second: str, watched: str) -> int | None:
    """Of the numbers that two plain runs agree in, how many another run has otherwise. None: it cannot be compared."""
    one, two, under = numbers(first), numbers(second), numbers(watched)
    if not one or len(one) != len(two):
        return None
    if len(under) != len(one):
        return abs(len(under) - len(one))
    return sum(a == b != c for a, b, c in zip(one, two, under, strict=True))


def repeated_numbers(first: str, second: str) -> int:
    return sum(a == b for a, b in zip(numbers(first), numbers(second), strict=False))


def training_seconds(outcome: Outcome, from_start: bool) -> float:
    """From the first printed line to the last; or from the start, where these lie together."""
    times = [moment for moment, _ in outcome.lines]
    return 0.0 if not times else times[-1] if from_start else times[-1] - times[0]


@dataclass(frozen=True)
class Report:
    there: bool
    steps: int = 0
    heard: bool = False
    findings: tuple[tuple[str, str], ...] = ()  # severity, name
    culprit: str = ""
    place: tuple[str, int] | None = None
    examined: frozenset[str] = frozenset()
    asked: int = 0
    ruled_out: int = 0  # of those not examined, how many this training cannot feed

    @property
    def coverage(self) -> float:
        return len(self.examined) / max(self.asked - self.ruled_out, 1)

    def alarms(self) -> list[str]:
        return [name for severity, name in self.findings if severity in ALARMS]


def read_report(found: dict[str, Any] | None) -> Report:
    if not found or "findings" not in found:
        return Report(there=False)
    findings = tuple((f["severity"], f["name"]) for f in found["findings"])
    first = found["culprits"][0] if found["culprits"] else None
    place = (first or {}).get("location")
    return Report(
        there=True,
        steps=found["steps"],
        heard=found["steps"] > 0 or bool(findings),
        findings=findings,
        culprit=first["name"] if first else "",
        place=(Path(place["file"]).name, place["line"]) if place else None,
        examined=frozenset(found["clear"]) | {name for _, name in findings},
        asked=len(found["clear"]) + len({name for _, name in findings}) + len(found["not_examined"]),
        ruled_out=sum(bool(RULED_OUT.search(entry["reason"])) for entry in found["not_examined"]),
    )


@dataclass(frozen=True)
class Healthy:
    script: Script
    report: Report
    changed: int | None  # None: not comparable
    compared: int
    code: tuple[int | None, int | None]  # plain, under sleuth
    plain: float
    watched: float
    after: float
    seconds: float

    @property
    def same(self) -> str:
        if self.code[0] != self.code[1]:
            return "NO"
        return {None: "?", 0: "yes"}.get(self.changed, "NO")

    @property
    def wrong_alarms(self) -> list[str]:
        return [name for name in self.report.alarms() if name not in self.script.arguable]


def judge_healthy(script: Script, first: Outcome, second: Outcome, watched: Outcome, report: Report) -> Healthy:
    from_start = training_seconds(first, False) < SHORTEST_SECONDS
    ends = [outcome.seconds - training_seconds(outcome, True) for outcome in (first, watched)]
    return Healthy(
        script,
        report,
        changed_numbers(first.text, second.text, watched.text),
        repeated_numbers(first.text, second.text),
        (first.code, watched.code),
        min(training_seconds(outcome, from_start) for outcome in (first, second)),
        training_seconds(watched, from_start),
        ends[1] - ends[0],
        watched.seconds,
    )


@dataclass(frozen=True)
class Planted:
    fault: Fault
    report: Report
    expected: int | None  # the line
    code: int | None
    seconds: float

    @property
    def verdict(self) -> str:
        if not self.report.culprit:
            return "silent"
        return "right" if self.report.culprit in (self.fault.illness, *self.fault.also) else "other"

    @property
    def at_the_line(self) -> bool | None:
        if self.expected is None:
            return None
        file, line = self.report.place or ("", 0)
        return file == Path(self.fault.edit.file).name and abs(line - self.expected) <= NEAR

    @property
    def further_down(self) -> bool:
        """The planted illness was found, only not first."""
        names = {name for _, name in self.report.findings}
        return self.verdict != "right" and bool(names & {self.fault.illness, *self.fault.also})
