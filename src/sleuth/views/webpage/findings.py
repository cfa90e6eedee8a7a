"""The verdict and the findings: what is ill, why, where, what to do, and the curve that shows it."""

import math
from collections.abc import Iterator, Mapping
from html import escape

from sleuth.core.finding import Finding
from sleuth.core.report import Report
from sleuth.views.charts.evidence import chart_name
from sleuth.views.webpage.source import excerpt
from sleuth.views.wording import MARKS, enumerate_names, ignored, repeated, sentence, severity, verdict

# Named first; a reader takes in about this many numbers at a glance.
MOST_NUMBERS = 8


def verdict_of(report: Report, proofs: Mapping[str, str]) -> str:
    """`proofs`: charts by the name that `chart_name` gives them."""
    mark, word, text = verdict(report)
    line = f'<p class="verdict {escape(report.status)}"><b>{mark} {word}</b> {escape(text)}</p>'
    if report.status != "sick":
        return line
    first = report.culprits[0]
    symptoms = [s.name for s in first.symptoms]
    explains = f"<p>It explains {escape(enumerate_names(symptoms))}.</p>" if symptoms else ""
    return line + _card(first.finding, proofs.get(_chart(report, first.finding), ""), explains)


def others(report: Report, proofs: Mapping[str, str]) -> str:
    first = report.culprits[0].finding if report.status == "sick" else None
    cards = []
    for finding in report.findings:
        if first is not None and finding.name == first.name:
            continue
        proof = proofs.get(_chart(report, finding), "")
        cards.append(_symptom(finding, proof) if finding.explained_by else _card(finding, proof))
    meant = "".join(f"<li>{escape(text)}</li>" for text in ignored(report))
    return "".join(cards) + (f"<h3>Found, and ignored as you asked</h3><ul>{meant}</ul>" if meant else "")


def _chart(report: Report, finding: Finding) -> str:
    # By name: in a report that was saved and read back, culprits are copies.
    return chart_name(1 + next((i for i, f in enumerate(report.findings) if f.name == finding.name), -1))


def _card(finding: Finding, proof: str, relation: str = "") -> str:
    return f'<article class="{finding.severity.value}">{_head(finding)}{_list(finding)}{relation}{proof}</article>'


def _symptom(finding: Finding, proof: str) -> str:
    """It goes with its cause: what to do about it alone matters only to whoever asks."""
    relation = f"<p>Because of {escape(finding.explained_by or '')}.</p>"
    more = f"<details><summary>Why, where, and what to do if it stays</summary>{_list(finding)}</details>"
    return f'<article class="{finding.severity.value}">{_head(finding)}{relation}{proof}{more}</article>'


def _head(finding: Finding) -> str:
    head = f"{MARKS[finding.severity]} {escape(finding.name)} <small>{escape(finding.code)} · {severity(finding)}</small>"
    return f"<h3>{head}</h3><p>{escape(sentence(finding.summary, finding.where))}</p>"


def _list(finding: Finding) -> str:
    return f"<dl>{''.join(f'<dt>{label}</dt><dd>{text}</dd>' for label, text in _rows(finding))}</dl>"


def _rows(finding: Finding) -> Iterator[tuple[str, str]]:
    if finding.why:
        yield "Why", escape(sentence(finding.why))
    where = ", ".join(t for t in (f"in {finding.where}" if finding.where else "", _steps(finding), repeated(finding)) if t)
    place = "" if finding.location is None else excerpt(finding.location)
    if where or place:
        yield "Where", place + (f"<p>{escape(sentence(where))}</p>" if where else "")
    yield "Do", f"<b>{escape(sentence(finding.fix))}</b>"
    numbers = {name: value for name, value in finding.numbers.items() if isinstance(value, int | float) and math.isfinite(value)}
    if numbers:
        yield "Numbers", escape(", ".join(f"{n.replace('_', ' ')} {_number(v)}" for n, v in list(numbers.items())[:MOST_NUMBERS]))


def _steps(finding: Finding) -> str:
    if finding.first_step is None:
        return ""
    if finding.last_step is None or finding.last_step == finding.first_step:
        return f"at step {finding.first_step:,}"
    return f"from step {finding.first_step:,} to {finding.last_step:,}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
