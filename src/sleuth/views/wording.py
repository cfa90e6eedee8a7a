"""Sentences that several views share."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sleuth.core.finding import Finding
from sleuth.core.report import Report
from sleuth.core.stage import Severity, Stage
from sleuth.views.facts import Fact, told

MARKS = {Severity.ERROR: "✗", Severity.WARNING: "✗", Severity.HINT: "·"}
SOURCES = {"examine": "examined"}
# Seconds below which the cost of watching is that of its beginning and end.
SHORT = 5.0


def heading(report: Report) -> list[str]:
    """What was looked at, for how long, in which framework."""
    done = count(report.steps, "step") if report.source == "run" else SOURCES.get(report.source, report.source)
    parts = [report.subject, f"{done} in {duration(report.seconds)}"]
    if report.framework:
        version = str((report.facts.get("versions") or {}).get(report.framework, ""))
        parts.append(f"{report.framework} {version.split('+')[0]}".strip())
    if report.source == "run" and report.overhead and report.seconds > SHORT:
        parts.append(f"watching cost {max(report.overhead['ratio'] - 1, 0) * 100:.1f} %")
    return parts


def duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Verdict(NamedTuple):
    mark: str
    word: str
    text: str


def verdict(report: Report) -> Verdict:
    looked = len(report.clear) + len({f.name for f in report.findings})
    match report.status:
        case "healthy":
            hints = f" See {count(len(report.findings), 'hint')} below." if report.findings else ""
            blind = f"; {len(report.not_examined)} could not look" if report.not_examined else ""
            return Verdict("✓", "HEALTHY", f"{count(looked, 'check')} looked and found nothing wrong{blind}.{hints}")
        case "unknown":
            if report.unanswered:
                return Verdict("?", "UNKNOWN", f"{count(looked, 'check')} found nothing wrong, but {report.unanswered}")
            if report.steps:
                return Verdict("?", "UNKNOWN", "the run died of an exception that no check knows.")
            return Verdict("?", "UNKNOWN", "no forward pass and no training step could be examined, so nothing is known.")
        case _:
            first = report.culprits[0].finding
            return Verdict(MARKS[first.severity], "SICK", sentence(first.title))


def ignored(report: Report) -> list[str]:
    """What was found and is meant, with the user's reason and where that stands."""
    places = {name: f" ({at.short_file}:{at.line})" for name, at in report.ignored_at.items()}
    return [f"{name}: {reason}{places.get(name, '')}" for name, reason in report.ignored.items()]


def count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def sentence(text: str, name: str | None = None) -> str:
    """With a capital and a full stop. A name in front (`fc1.weight`, or a word of `name`) keeps its own spelling."""
    text = text.strip()
    word = text.split(" ", 1)[0]
    if len(word) > 1 and word.isalpha() and word.islower() and word not in (name or ""):
        text = text[0].upper() + text[1:]
    return text if not text or text[-1] in ".!?…:" else text + "."


def enumerate_names(names: Iterable[str]) -> str:
    *front, last = names
    return f"{', '.join(front)} and {last}" if front else last


def severity(finding: Finding) -> str:
    return f"{finding.severity.value} · {finding.confidence.value}"


def repeated(finding: Finding) -> str:
    return f"seen {finding.times:,} times" if finding.times > 1 else ""


def reasons(not_examined: Mapping[str, str]) -> dict[str, list[str]]:
    """Names by reason: each reason is told once, the commonest first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, reason in not_examined.items():
        groups[reason].append(name)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


class StageAccount(NamedTuple):
    stage: Stage
    facts: list[Fact]
    found: list[Finding]
    clear: list[str]
    not_examined: list[str]

    def counts(self) -> list[tuple[str, str]]:
        """(text, colour) of what there is any of."""
        hints = sum(f.severity is Severity.HINT for f in self.found)
        every = (
            (len(self.found) - hints, "✗ {} found", "bold red"),
            (hints, "· {} hinted", "cyan"),
            (len(self.clear), "✓ {} clear", "green"),
            (len(self.not_examined), "– {} not examined", "dim"),
        )
        return [(text.format(n), colour) for n, text, colour in every if n]


def stage_accounts(report: Report) -> list[StageAccount]:
    """The three lists, stage by stage; what sleuth found about itself stands with its stage too."""
    facts = told(report.facts)
    accounts = []
    for stage in Stage:
        names = [n for n, s in report.stage_of.items() if s is stage]
        found = [f for f in report.findings if f.stage is stage]
        clear = [n for n in names if n in report.clear]
        absent = [n for n in names if n in report.not_examined]
        if facts.get(stage) or found or clear or absent:
            accounts.append(StageAccount(stage, facts.get(stage, []), found, clear, absent))
    return accounts
