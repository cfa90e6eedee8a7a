"""The report as text: the answer first, then stage by stage. Readable without colour and in 80 columns."""

from typing import TextIO

from rich.cells import cell_len

from sleuth.core.diagnosis import Culprit
from sleuth.core.finding import Finding
from sleuth.core.location import Location
from sleuth.core.observation import DIED
from sleuth.core.report import Report
from sleuth.core.stage import Severity
from sleuth.views.sheet import WIDTH, Sheet, Span, for_screen, shorten, shorten_start
from sleuth.views.wording import (
    MARKS,
    enumerate_names,
    heading,
    ignored,
    reasons,
    repeated,
    sentence,
    severity,
    stage_accounts,
    verdict,
)

COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.HINT: "cyan"}
STATUS_COLOURS = {"healthy": "bold green", "unknown": "bold yellow", "sick": "bold red"}
# Room for most labels of a fact, such as "Validation data".
LABEL = 17
# A subject's name may be a whole path; the rest of the first line must still fit.
LONGEST_SUBJECT = 36


def render(report: Report) -> str:
    return write(report, WIDTH).plain()


def render_for_screen(report: Report, stream: TextIO | None = None) -> str:
    return for_screen(lambda width: write(report, width), stream)


def write(report: Report, width: int) -> Sheet:
    sheet = Sheet(width)
    subject, *rest = heading(report)
    sheet.paragraph(" · ".join(["sleuth", shorten_start(subject, LONGEST_SUBJECT), *rest]), style="dim")
    sheet.blank()
    _answer(sheet, report)
    _stages(sheet, report)
    _not_examined(sheet, report)
    _ignored(sheet, report)
    _notes(sheet, report)
    _last_line(sheet, report)
    return sheet


def _answer(sheet: Sheet, report: Report) -> None:
    if report.status != "sick":
        mark, word, text = verdict(report)
        sheet.paragraph(f"{word}: {text}", label=f"{mark} ", style="bold", label_style=STATUS_COLOURS[report.status])
        if report.status == "unknown" and not report.unanswered:
            _why_unknown(sheet, report)
    for i, culprit in enumerate(report.culprits):
        sheet.blank()
        _culprit(sheet, culprit, in_full=i == 0 and report.status == "sick")


def _why_unknown(sheet: Sheet, report: Report) -> None:
    died = [note for note in report.notes if note.startswith(DIED)]
    for reason in (died or list(reasons(report.not_examined)))[:1]:
        sheet.paragraph(sentence(reason), indent=2, label="Why:  ")


def _culprit(sheet: Sheet, culprit: Culprit, *, in_full: bool) -> None:
    finding = culprit.finding
    style = COLOURS[finding.severity]
    sheet.row(
        Span(f"{MARKS[finding.severity]} {finding.name}", f"bold {style}"),
        Span(f"  {finding.code} · {severity(finding)}", style),
    )
    if in_full:
        sheet.paragraph(sentence(finding.title), indent=2, style="bold")
    sheet.paragraph(sentence(finding.summary, finding.where), indent=2)
    _place(sheet, finding)
    if in_full:
        sheet.paragraph(finding.why, indent=2, label="Why:  ")
    sheet.paragraph(sentence(finding.fix), indent=2, label="Do:   ", label_style="bold green")
    if culprit.symptoms:
        names = enumerate_names(s.name for s in culprit.symptoms)
        sheet.paragraph(f"It explains {names}.", indent=2)


def _place(sheet: Sheet, finding: Finding) -> None:
    if finding.location is not None:
        _source_line(sheet, finding.location)
    where = finding.where if finding.where and finding.where not in finding.summary else ""
    if text := ", ".join(t for t in (where, repeated(finding)) if t):
        sheet.paragraph(text, indent=2, label="At:   " if where else "")


def _source_line(sheet: Sheet, location: Location) -> None:
    room = sheet.width - 4
    place, text = shorten_start(f"{location.short_file}:{location.line}", room), location.text.strip()
    if not text:
        sheet.row(Span(f"  {place}", "bold cyan"))
    elif cell_len(place) + 3 + cell_len(text) <= room:
        sheet.row(Span(f"  {place}", "bold cyan"), Span(f"   {text}"))
    else:
        sheet.row(Span(f"  {place}", "bold cyan"))
        sheet.row(Span(f"    {shorten(text, room - 2)}"))


def _stages(sheet: Sheet, report: Report) -> None:
    for account in stage_accounts(report):
        sheet.blank()
        sheet.row(Span(account.stage.title, "bold"), *(Span(f"   {text}", colour) for text, colour in account.counts()))
        for label, text in account.facts:
            sheet.paragraph(text, indent=2, label=f"{label}  ".ljust(LABEL), label_style="")
        for finding in account.found:
            because = f"  because of {finding.explained_by}" if finding.explained_by else ""
            sheet.row(Span(f"  {MARKS[finding.severity]} {finding.name}", COLOURS[finding.severity]), Span(because))
        if account.clear:
            sheet.paragraph(", ".join(account.clear), indent=2, label="✓ ", style="dim", label_style="green")


def _not_examined(sheet: Sheet, report: Report) -> None:
    if not report.not_examined:
        return
    sheet.blank()
    sheet.row(Span("Not examined, because", "bold"))
    for reason, names in reasons(report.not_examined).items():
        sheet.paragraph(reason.rstrip("."), indent=2, label="– ", label_style="dim")
        sheet.paragraph(", ".join(names), indent=6, style="dim")


def _ignored(sheet: Sheet, report: Report) -> None:
    if not report.ignored:
        return
    sheet.blank()
    sheet.row(Span("Found, and ignored as you asked", "bold"))
    for text in ignored(report):
        sheet.paragraph(text, indent=2, label="– ", label_style="dim")


def _notes(sheet: Sheet, report: Report) -> None:
    if not report.notes:
        return
    sheet.blank()
    sheet.row(Span("Please note", "bold"))
    for note in report.notes:
        sheet.paragraph(sentence(note), indent=2, label="– ", label_style="dim")


def _last_line(sheet: Sheet, report: Report) -> None:
    sheet.blank()
    known = next((c.finding.name for c in report.culprits if c.finding.name in report.stage_of), None)
    more = f" · more on it: sleuth explain {known}" if known else ""
    sheet.row(Span(f"Status: {report.status.upper()}", STATUS_COLOURS[report.status]), Span(more))
