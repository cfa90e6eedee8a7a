"""The user's line with those around it."""

import linecache
from html import escape

from sleuth.core.location import Location

AROUND = 3


def excerpt(location: Location) -> str:
    """Only what the finding itself quotes may be shown from a file that has changed since, or that is no Python."""
    place = f"<p><code>{escape(location.short_file)}:{location.line}</code></p>"
    lines = _around(location) or ([(location.line, location.text)] if location.text else [])
    rows = "".join(
        f"<span{' class=here' if number == location.line else ''}><i>{number}</i> {escape(text)}\n</span>"
        for number, text in lines
    )
    return place + (f'<pre class="source" tabindex="0">{rows}</pre>' if rows else "")


def _around(location: Location) -> list[tuple[int, str]]:
    """A run may come from a stranger: its word that some file stands at some place opens no file but source that fits."""
    known = location.file.endswith(".py") or location.file in linecache.cache
    lines = linecache.getlines(location.file) if known and location.text.strip() else []
    if not 0 < location.line <= len(lines) or lines[location.line - 1].strip() != location.text.strip():
        return []
    first = max(location.line - AROUND, 1)
    shown = [line.rstrip().expandtabs(4) for line in lines[first - 1 : location.line + AROUND]]
    indent = min((len(line) - len(line.lstrip()) for line in shown if line), default=0)
    return [(number, line[indent:]) for number, line in enumerate(shown, first)]
