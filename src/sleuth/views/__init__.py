"""Data in, text out."""

from collections.abc import Callable, Mapping

from sleuth.core.report import Report
from sleuth.views import html, terminal
from sleuth.views.webpage import page

VIEWS: Mapping[str, Callable[[Report], str]] = {
    ".txt": terminal.render,
    ".html": page.render,
    "notebook": html.render,
    "terminal": terminal.render_for_screen,
}
