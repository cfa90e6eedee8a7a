"""From what was seen to the report."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.core.diagnosis import diagnose
from sleuth.core.engine import Engine, Judgement
from sleuth.core.finding import Finding
from sleuth.core.history import Seen
from sleuth.core.observation import Crash, Drawing, LossCall, Role, Step
from sleuth.core.reading.unanswered import backward_holds, little_examined, unanswered
from sleuth.core.recording.facts import facts_of
from sleuth.core.recording.remembered import Remembered
from sleuth.core.report import Report
from sleuth.core.settings import Configuration, parse_configuration, read_configuration
from sleuth.core.stage import Severity
from sleuth.session.recorded import RecordedTraining

if TYPE_CHECKING:
    from sleuth.core.recording.recording import Recording


# Of these the user's own training was seen; elsewhere experiments decide.
WATCHED = ("run", "watch")


def configured(select: list[str] | None, ignore: Mapping[str, str] | None) -> Configuration:
    """What the user asked for now, over what stands in pyproject.toml."""
    from sleuth.checks import all_checks

    checks = all_checks()
    stored = read_configuration(Path.cwd(), checks)
    given = parse_configuration({"select": select or [], "ignore": ignore or {}}, checks, "examine()")
    return Configuration(given.select or stored.select, {**stored.ignore, **given.ignore}, stored.thresholds)


def report_of(recorded: RecordedTraining, *, source: str, notes: tuple[str, ...] = ()) -> Report:
    """Of a training that was recorded, also while it goes on."""
    from sleuth.store.arrays import StoredRun

    with recorded.lock:
        return build_report(
            recorded.engine,
            source=source,
            framework=recorded.adapter.name,
            subject=recorded.name,
            seconds=recorded.seconds,
            notes=(*recorded.notes, *notes),
            overhead=recorded.overhead,
            record=None if recorded.file is None else StoredRun(recorded.file),
        )


def build_report(
    engine: Engine,
    *,
    source: str,
    framework: str | None,
    subject: str,
    seconds: float,
    notes: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
    overhead: Mapping[str, float] | None = None,
    record: "Recording | None" = None,
) -> Report:
    from sleuth.views import VIEWS

    judgement = engine.judge()
    culprits = diagnose(_worded(judgement.findings, engine, framework), {c.name: c.explains for c in engine.checks})
    findings = tuple(f for culprit in culprits for f in (culprit.finding, *culprit.symptoms))
    seen = engine.history
    crashes = Seen(seen).all(Crash)
    examined = any(seen.has(what) for what in (Role.ACTIVATION, LossCall, Step)) and not crashes
    return Report(
        source=source,
        framework=framework,
        subject=subject,
        steps=seen.count(Step),
        seconds=seconds,
        culprits=culprits,
        findings=findings,
        clear=judgement.clear,
        not_examined=judgement.not_examined,
        ignored=judgement.ignored,
        ignored_at=judgement.ignored_at,
        stage_of={c.name: c.stage for c in engine.checks},
        # A script that died has not shown that it trains.
        examined_anything=examined,
        unanswered=_unanswered(Seen(seen), judgement, source) if examined and source in WATCHED else "",
        overhead=overhead,
        notes=(*(crash.note for crash in crashes), *notes),
        facts={**facts_of(seen), **(facts or {})},
        views=VIEWS,
        record=record,
        remembered=Remembered(seen),
        drawing=next((d.svg for d in Seen(seen).all(Drawing)), ""),
    )


def _unanswered(seen: Seen, judgement: Judgement, source: str) -> str:
    if any(f.severity is not Severity.HINT for f in judgement.findings):
        return ""
    looked = len(judgement.clear) + len(judgement.findings)
    # A watch makes no experiments: that many checks do not look is what it is.
    enough = source != "run" or backward_holds(seen)
    return unanswered(seen) or ("" if enough else little_examined(looked, judgement.not_examined))


def _worded(findings: Iterable[Finding], engine: Engine, framework: str | None) -> list[Finding]:
    from sleuth.adapters import in_words_of

    usual = {c.name: c.fix for c in engine.checks}
    return [replace(f, fix=in_words_of(framework, f.name, f.fix, usual.get(f.name, ""))) for f in findings]
