"""The page of a check, for the terminal, as Markdown and as plain data."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sleuth.core.check import Check
from sleuth.views.example import Example, example
from sleuth.views.page import Section, explained_by, sections
from sleuth.views.readings import decided_by, readings
from sleuth.views.sheet import WIDTH, Sheet, Span, for_screen
from sleuth.views.thresholds import thresholds

SCHEMA = 1
# What Markdown would take for emphasis, a table, a tag or a link; an underscore inside a word is safe.
SPECIAL = re.compile(r"([*|<\\]|(?<!\w)_|_(?!\w)|\](?=\())")
CHANGES = {"-": "red", "+": "green"}


def explain(check: Check, checks: Iterable[Check], *, markdown: bool = False, shown: Example | None = None) -> str:
    """`checks` are all there are: they tell what explains this one, and which names have a page to link to.
    `shown` takes the place of the example that lies in the package."""
    checks = tuple(checks)
    page = tuple(sections(check, checks, shown or example(check.name)))
    return _markdown(check, page, {c.name for c in checks}) if markdown else _sheet(check, page, WIDTH).plain()


def explain_for_screen(check: Check, checks: Iterable[Check]) -> str:
    page = tuple(sections(check, tuple(checks), example(check.name)))
    return for_screen(lambda width: _sheet(check, page, width))


def as_data(check: Check, checks: Iterable[Check]) -> dict[str, Any]:
    """The page for programs; every value is plain."""
    shown = example(check.name)
    return {
        "schema": SCHEMA,
        "kind": "check",
        "code": check.code,
        "name": check.name,
        "stage": check.stage.value,
        "severity": check.severity.value,
        "title": check.title,
        "why": check.why,
        "fix": check.fix,
        "symptoms": list(check.symptoms),
        "decided_by": decided_by(check),
        "looks_at": readings(check),
        "explains": list(check.explains),
        "explained_by": explained_by(check, checks),
        "thresholds": [asdict(t) for t in thresholds(check)],
        "example": asdict(shown) if shown else None,
    }


def _sheet(check: Check, page: Sequence[Section], width: int) -> Sheet:
    sheet = Sheet(width)
    sheet.row(
        Span(check.name, "bold"),
        Span(f"  {check.code} · {check.severity.value} · {check.stage.title}", "dim"),
    )
    sheet.paragraph(f"{check.title}.")
    for section in page:
        sheet.blank()
        sheet.row(Span(section.heading, "bold"))
        sheet.paragraph(section.text, indent=2)
        for line in section.code.splitlines():
            sheet.row(Span(f"    {line}", _style(line, section.language)))
        sheet.paragraph(", ".join(section.names), indent=2)
        for item in section.items:
            sheet.paragraph(item, indent=2, label="– ", label_style="dim")
    return sheet


def _style(line: str, language: str) -> str:
    if language == "diff":
        return CHANGES.get(line[:1], "")
    return "" if language == "text" else "cyan"


def _markdown(check: Check, page: Sequence[Section], pages: set[str]) -> str:
    lines = [f"# {check.name}", "", f"**{escaped(check.title)}.**", ""]
    lines += [f"`{check.code}` · {check.severity.value} · {check.stage.title}", ""]
    for section in page:
        lines += [f"## {section.heading}", ""]
        lines += [escaped(section.text), ""] if section.text else []
        lines += [f"```{section.language}", *section.code.splitlines(), "```", ""] if section.code else []
        lines += [f"- {escaped(item)}" for item in section.items]
        lines += [f"- [{name}]({name}.md)" if name in pages else f"- {name}" for name in section.names]
        lines += [""] if section.items or section.names else []
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """As Markdown that shows just this text, except that `code` in backticks stays code."""
    parts = text.split("`")
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
