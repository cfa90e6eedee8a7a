"""The parts of a report that are text, as the report's own page shows them, with places for the charts between them."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

from sleuth.core.report import Report
from sleuth.views.charts import CHARTS
from sleuth.views.webpage.sections import TITLES, sections

WAITING = "<p>The run is being judged …</p>"

Part = dict[str, Any]  # name, title, and either html, in which every name is escaped, or charts: true


def parts_of(report: Report) -> list[Part]:
    """Charts are drawn from the run itself, and asked for one section at a time."""
    bare = replace(report, record=None, remembered=None)
    return [_part(section.name, section.title, section.body) for section in sections(bare, drawn=True)]


def parts_without(trouble: str = "") -> list[Part]:
    """Of a run that was not judged yet, or cannot be."""
    return [_part("verdict", "Verdict", f"<p>{escape(trouble)}</p>" if trouble else WAITING), *_charts()]


def _charts() -> Iterator[Part]:
    return (_part(group, title, "") for group, title in TITLES.items())


def _part(name: str, title: str, html: str) -> Part:
    return {"name": name, "title": title, **({"charts": True} if name in CHARTS else {"html": html})}
