"""Reports that were saved as JSON, read back."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sleuth.core.diagnosis import Culprit
from sleuth.core.errors import UnusableInput
from sleuth.core.finding import Finding, Series
from sleuth.core.location import Location
from sleuth.core.report import SCHEMA, Report
from sleuth.core.stage import Confidence, Severity, Stage


def read_report(path: Path, views: Mapping[str, Callable[[Report], str]]) -> Report:
    table = _read(path)
    version = table.get("schema")
    if not isinstance(version, int) or "findings" not in table:
        raise UnusableInput(f"{path} is JSON but not a report of sleuth; `sleuth examine … --json FILE` writes one.")
    if version > SCHEMA:
        raise UnusableInput(
            f"{path} was written by a newer sleuth (schema {version}; this one reads up to {SCHEMA}): pip install -U sleuth"
        )
    try:
        return _report(table, views)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise UnusableInput(f"{path} is a damaged report ({what}); save it again with `sleuth examine … --json FILE`.") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnusableInput(f"there is no file {path}.") from None
    except OSError as error:
        raise UnusableInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:  # not JSON, not even text, or nested without end
        raise UnusableInput(f"{path} is not JSON: {str(error) or 'nested too deep'}.") from None
    if not isinstance(table, dict):
        raise UnusableInput(f"{path} is JSON but not a report of sleuth; `sleuth examine … --json FILE` writes one.")
    return table


def _report(table: Mapping[str, Any], views: Mapping[str, Callable[[Report], str]]) -> Report:
    findings = tuple(_finding(f) for f in table["findings"])
    return Report(
        source=str(table["source"]),
        framework=table["framework"],
        subject=str(table.get("subject", "")),
        steps=int(table["steps"]),
        seconds=float(table.get("seconds", 0.0)),
        culprits=tuple(_culprit(c, findings) for c in table["culprits"]),
        findings=findings,
        clear=tuple(str(name) for name in table["clear"]),
        not_examined={str(e["name"]): str(e["reason"]) for e in table["not_examined"]},
        ignored={str(e["name"]): str(e["reason"]) for e in table["ignored"]},
        ignored_at={str(e["name"]): at for e in table["ignored"] if (at := _location(e.get("location"))) is not None},
        stage_of={str(name): Stage(stage) for stage, names in table.get("asked", {}).items() for name in names},
        examined_anything=table["status"] != "unknown" or bool(table.get("unanswered")),
        unanswered=str(table.get("unanswered", "")),
        overhead=table.get("overhead"),
        notes=tuple(str(note) for note in table.get("notes", ())),
        facts=dict(table.get("facts", {})),
        views=views,
    )


def _culprit(entry: Mapping[str, Any], findings: tuple[Finding, ...]) -> Culprit:
    by_name = {f.name: f for f in findings}
    return Culprit(_finding(entry), tuple(by_name[name] for name in entry["symptoms"]))


def _finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(
        code=str(entry["code"]),
        name=str(entry["name"]),
        stage=Stage(entry["stage"]),
        severity=Severity(entry["severity"]),
        confidence=Confidence(entry["confidence"]),
        title=str(entry.get("title", "")),
        summary=str(entry["summary"]),
        why=str(entry.get("why", "")),
        fix=str(entry["fix"]),
        where=entry["where"],
        location=_location(entry["location"]),
        numbers=dict(entry["numbers"]),
        series=tuple(Series(s["name"], tuple(s["x"]), tuple(s["y"])) for s in entry.get("series", ())),
        first_step=entry.get("first_step"),
        last_step=entry.get("last_step"),
        times=int(entry.get("times", 1)),
        explained_by=entry.get("explained_by"),
    )


def _location(entry: Mapping[str, Any] | None) -> Location | None:
    return None if entry is None else Location(str(entry["file"]), int(entry["line"]), str(entry.get("text", "")))
