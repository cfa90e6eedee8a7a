"""The answer to a symptom: for the terminal and as plain data."""

from typing import Any

from sleuth.core.check import Check
from sleuth.views.explain import SCHEMA
from sleuth.views.readings import decided_by
from sleuth.views.sheet import WIDTH, Sheet, Span, for_screen
from sleuth.views.symptoms import Answer, Suspect
from sleuth.views.wording import sentence

COMMAND = "sleuth examine train.py:training"


def render(answer: Answer) -> str:
    return _sheet(answer, WIDTH).plain()


def render_for_screen(answer: Answer) -> str:
    return for_screen(lambda width: _sheet(answer, width))


def as_data(answer: Answer) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "symptom",
        "text": answer.text,
        "described": answer.described.name if answer.described else None,
        "suspects": [_suspect(s) for s in answer.suspects],
        "notes": list(answer.notes),
        "command": COMMAND,
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    check = suspect.check
    return {
        "code": check.code,
        "name": check.name,
        "stage": check.stage.value,
        "severity": check.severity.value,
        "title": check.title,
        "likelihood": round(suspect.likelihood, 3),
        "because": suspect.because,
        "decided_by": decided_by(check),
        "fix": check.fix,
        "command": f"{COMMAND} --select {check.name}",
    }


def _sheet(answer: Answer, width: int) -> Sheet:
    sheet = Sheet(width)
    sheet.paragraph(f"“{answer.text}”", style="bold")
    for note in answer.notes:
        sheet.paragraph(note, indent=2)
    if answer.described:
        sheet.blank()
        _entry(sheet, "This is ", answer.described, indent=2)
    if answer.suspects:
        sheet.blank()
        word = "causes" if answer.described else "culprits"
        sheet.row(Span(f"Likely {word}, the likeliest first", "bold"))
    for place, suspect in enumerate(answer.suspects, 1):
        _entry(sheet, f"{place:>3}  ", suspect.check, indent=5)
    _what_next(sheet, answer)
    return sheet


def _entry(sheet: Sheet, label: str, check: Check, indent: int) -> None:
    sheet.row(Span(f"{label}{check.name}", "bold"), Span(f"  {check.code} · {check.severity.value}", "dim"))
    sheet.paragraph(sentence(check.title), indent=indent)
    sheet.paragraph(f"Decided by {decided_by(check)}.", indent=indent, style="dim")


def _what_next(sheet: Sheet, answer: Answer) -> None:
    every = answer.checks
    sheet.blank()
    for label, command in (
        ("Find out which:   ", COMMAND),
        ("Only with these:  ", f"{COMMAND} --select {','.join(c.code for c in every)}"),
        ("More on one:      ", f"sleuth explain {every[0].name}"),
    ):
        sheet.paragraph(command, label=label, style="cyan")
