"""The report for a notebook or a browser: one self-contained fragment, everything escaped, light or dark."""

from collections.abc import Iterable
from html import escape

from sleuth.core.diagnosis import Culprit
from sleuth.core.report import Report
from sleuth.views.wording import (
    MARKS,
    StageAccount,
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

# Colours of middle brightness and the page's own text colour: readable on white and on black.
STYLE = """
.sleuth-report {font: 14px/1.5 system-ui, sans-serif; max-width: 52em; color: inherit; color-scheme: light dark}
.sleuth-report h3 {font-size: 1.15em; margin: .6em 0 .2em}
.sleuth-report h4 {font-size: 1em; margin: 0}
.sleuth-report p, .sleuth-report ul {margin: .25em 0}
.sleuth-report small {opacity: .7; font-weight: normal}
.sleuth-report code {font: .92em ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap}
.sleuth-report section {border-left: 3px solid; padding: .2em 0 .2em .8em; margin: .6em 0}
.sleuth-report section.error {border-color: #d9534f}
.sleuth-report section.warning {border-color: #d08a1d}
.sleuth-report section.hint {border-color: #3c8dbc}
.sleuth-report .sick {color: #d9534f}
.sleuth-report .healthy {color: #2f9e56}
.sleuth-report .unknown {color: #d08a1d}
.sleuth-report summary {cursor: pointer}
"""


def render(report: Report) -> str:
    mark, word, text = verdict(report)
    parts = [
        f"<p><small>sleuth · {escape(' · '.join(heading(report)))}</small></p>",
        f'<h3><span class="{escape(report.status)}">{mark} {word}</span> {escape(text)}</h3>',
        *(_culprit(c) for c in report.culprits),
        *(_stage(account) for account in stage_accounts(report)),
        _not_examined(report),
        _listed("Found, and ignored as you asked", ignored(report)),
        _listed("Please note", [sentence(note) for note in report.notes]),
    ]
    page = f'<div class="sleuth-report"><style>{STYLE}</style>{"".join(parts)}</div>'
    # Pure ASCII: right in whatever encoding the page around it is read, and with half characters in a name.
    return page.encode("ascii", "xmlcharrefreplace").decode()


def _culprit(culprit: Culprit) -> str:
    finding = culprit.finding
    where = ", ".join(t for t in (finding.where or "", repeated(finding)) if t)
    rows = [
        f"<p>{escape(sentence(finding.summary, finding.where))}</p>",
        f"<p><b>Why</b> {escape(finding.why)}</p>" if finding.why else "",
        f"<p><b>Where</b> {_place(culprit)} {escape(where)}</p>" if where or finding.location else "",
        f"<p><b>Do</b> {escape(sentence(finding.fix))}</p>",
    ]
    if culprit.symptoms:
        rows.append(f"<p>It explains {escape(enumerate_names(s.name for s in culprit.symptoms))}.</p>")
    head = (
        f"<h4>{MARKS[finding.severity]} {escape(finding.name)} <small>{escape(finding.code)} · {severity(finding)}</small></h4>"
    )
    return f'<section class="{finding.severity.value}">{head}{"".join(rows)}</section>'


def _place(culprit: Culprit) -> str:
    location = culprit.finding.location
    if location is None:
        return ""
    text = f" <code>{escape(location.text)}</code>" if location.text else ""
    return f"<code>{escape(location.short_file)}:{location.line}</code>{text}"


def _stage(account: StageAccount) -> str:
    summary = " &nbsp; ".join(text for text, _ in account.counts())
    rows = [f"{label}: {text}" if label else text for label, text in account.facts]
    for finding in account.found:
        because = f" because of {finding.explained_by}" if finding.explained_by else ""
        rows.append(f"{MARKS[finding.severity]} {finding.name}{because}")
    rows += [f"✓ {name}" for name in account.clear]
    return f"<details><summary><b>{account.stage.title}</b> &nbsp; {summary}</summary>{_items(rows)}</details>"


def _not_examined(report: Report) -> str:
    rows = [f"{reason.rstrip('.')}: {', '.join(names)}" for reason, names in reasons(report.not_examined).items()]
    return f"<details><summary><b>Not examined, because</b></summary>{_items(rows)}</details>" if rows else ""


def _listed(title: str, rows: list[str]) -> str:
    return f"<p><b>{escape(title)}</b></p>{_items(rows)}" if rows else ""


def _items(rows: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(row)}</li>' for row in rows)}</ul>"
