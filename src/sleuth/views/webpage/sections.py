"""The page from top to bottom: the answer, the checks, the evidence, then everything there is to look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from sleuth.core.report import Report
from sleuth.views.charts import CHARTS, POINTS, Material
from sleuth.views.charts.evidence import evidence
from sleuth.views.webpage import checklist, findings, surroundings
from sleuth.views.webpage.frames import framed
from sleuth.views.wording import count, reasons, sentence

TITLES = {
    "curves": "Curves",
    "layers": "Layers over time",
    "flow": "Gradient flow",
    "histograms": "Sizes of values",
    "time": "Time",
    "memory": "Memory",
}
TRIAL = "These, and the charts below, are of short trials on a copy: your own training has not been run."
# So many reasons are read at a glance.
FEW = 6
PACKAGE = (
    "Layers over time, gradient flow and sizes of values are drawn with plotly: pip install plotly, and write the page again."
)


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    body: str  # HTML


def sections(report: Report, *, drawn: bool) -> Iterator[Section]:
    """`drawn`: there is a plotly to draw the charts; else they are pictures, where that can be."""
    material = Material(report.record or report.remembered, report)
    proofs = {chart.name: framed(chart, drawn=drawn) for chart in evidence(material, POINTS)}
    yield Section("verdict", "Verdict", findings.verdict_of(report, proofs))
    yield Section("checks", "Checks", checklist.checklist(report))
    yield Section("findings", "Further findings" if report.status == "sick" else "Findings", findings.others(report, proofs))
    for group, title in TITLES.items():
        charts = list(CHARTS[group](material, POINTS))
        body = "".join(framed(chart, drawn=drawn, titled=True) for chart in charts)
        yield Section(
            group, title, f"<p>{TRIAL}</p>{body}" if body and report.source == "examine" and group == "curves" else body
        )
    yield Section("architecture", "Architecture", surroundings.architecture(report))
    yield Section("environment", "Environment", surroundings.environment(report))
    yield Section("overhead", "What watching cost", surroundings.overhead(report))
    yield Section("not-examined", "What could not be examined", _not_examined(report))
    yield Section("notes", "Please note", _notes(report, drawn=drawn))


def _not_examined(report: Report) -> str:
    rows = [
        f"<li>{escape(sentence(reason))} <small>{escape(', '.join(names))}</small></li>"
        for reason, names in reasons(report.not_examined).items()
    ]
    if not rows:
        return ""
    told = f"{count(len(report.not_examined), 'check')} could not look, for {count(len(rows), 'reason')}"
    return f"<details{' open' if len(rows) <= FEW else ''}><summary>{told}</summary><ul>{''.join(rows)}</ul></details>"


def _notes(report: Report, *, drawn: bool) -> str:
    notes = [*report.notes, *([] if drawn else [PACKAGE])]
    return f"<ul>{''.join(f'<li>{escape(sentence(note))}</li>' for note in notes)}</ul>" if notes else ""
