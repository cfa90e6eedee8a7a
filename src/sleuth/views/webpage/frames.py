"""A chart's place in the page: its height is known before it is drawn, so that nothing jumps."""

import json
from html import escape
from typing import Any

from sleuth.views.charts import Chart
from sleuth.views.webpage.sketch import sketch


def framed(chart: Chart, *, drawn: bool, titled: bool = False) -> str:
    title = f"<h3>{escape(chart.title)}</h3>" if titled else ""
    note = f"<figcaption>{escape(chart.note)}</figcaption>" if chart.note else ""
    if not drawn:
        picture = sketch(chart)
        return f"<figure>{title}{picture}{note}</figure>" if picture else ""
    label = escape(f"{chart.title}. {KEYS}", quote=True)
    box = f'<div class="chart" id="{chart.name}" role="group" aria-label="{label}" style="height:{chart.height}px"></div>'
    data = f'<script type="application/json" data-for="{chart.name}">{as_script(chart.figure)}</script>'
    controls = bool(chart.figure["layout"]["meta"].get("scale") or chart.figure["layout"]["meta"].get("choose"))
    head = f'<div class="chart-head{" with-controls" if controls else ""}">{title}</div>' if title or controls else ""
    return f"<figure>{head}{box}{note}{data}</figure>"


KEYS = "Chart. Plus and minus zoom, arrows move, 0 shows everything."


def as_script(value: Any) -> str:
    """JSON that may stand inside a script element, whatever its texts hold: pure ASCII, without < > &."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
