"""Every check that was asked, stage by stage: ✗ found, ✓ clear, – not examined."""

from collections.abc import Iterator
from html import escape

from sleuth.core.report import Report
from sleuth.core.stage import Severity
from sleuth.views.wording import MARKS, StageAccount, stage_accounts


def checklist(report: Report) -> str:
    return "".join(_stage(account) for account in stage_accounts(report))


def _stage(account: StageAccount) -> str:
    counts = "".join(f" <span>{escape(text)}</span>" for text, _ in account.counts())
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in account.facts)
    rows = "".join(f'<li class="{kind}">{text}</li>' for kind, text in _rows(account))
    is_open = " open" if any(f.severity is not Severity.HINT for f in account.found) else ""
    return (
        f"<details{is_open}><summary><b>{escape(account.stage.title)}</b>{counts}</summary>"
        f"{f'<dl>{facts}</dl>' if facts else ''}<ul class='checks'>{rows}</ul></details>"
    )


def _rows(account: StageAccount) -> Iterator[tuple[str, str]]:
    for finding in account.found:
        because = f" <small>because of {escape(finding.explained_by)}</small>" if finding.explained_by else ""
        yield finding.severity.value, f"{MARKS[finding.severity]} {escape(finding.name)}{because}"
    for name in account.clear:
        yield "clear", f"✓ {escape(name)}"
    for name in account.not_examined:
        yield "blind", f"– {escape(name)}"
