"""The report for a notebook or a browser: one self-contained fragment, everything escaped."""

from html import escape

from sleuth.core.report import Report
from sleuth.views import terminal


def render(report: Report) -> str:
    return f'<pre style="white-space:pre-wrap;line-height:1.3">{escape(terminal.render(report))}</pre>'
