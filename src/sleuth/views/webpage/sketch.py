"""Curves as plain pictures, for a page without plotly."""

import math
from collections.abc import Mapping, Sequence
from html import escape, unescape
from typing import Any

from sleuth.views.charts import Chart
from sleuth.views.charts.figure import COLOURS

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 220, 64, 24

Span = tuple[float, float]


def sketch(chart: Chart) -> str:
    """Empty where it is more than lines."""
    traces = [t for t in chart.figure["data"] if t.get("type") == "scatter" and "line" in t.get("mode", "") and t.get("name")]
    if not traces or any(t.get("type") != "scatter" for t in chart.figure["data"]) or chart.figure["layout"]["meta"].get("names"):
        return ""
    log = chart.figure["layout"]["yaxis"].get("type") == "log"
    heights = [_heights(t["y"], log) for t in traces]
    across, up = (
        _span([x for t in traces for x in t["x"] if x is not None]),
        _span([y for ys in heights for y in ys if y is not None]),
    )
    if across is None or up is None:
        return ""
    drawn = "".join(
        _line(t, ys, across, up, COLOURS[i % len(COLOURS)]) for i, (t, ys) in enumerate(zip(traces, heights, strict=True))
    )
    names = escape(", ".join(unescape(str(t["name"])) for t in traces))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title, quote=True)}">'
        f"{_labels(across, up, log)}{drawn}</svg><p><small>{names}</small></p>"
    )


def _heights(values: Sequence[float | None], log: bool) -> list[float | None]:
    if not log:
        return list(values)
    return [None if v is None or v <= 0 else math.log10(v) for v in values]


def _span(values: Sequence[float]) -> Span | None:
    if not values:
        return None
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _line(trace: Mapping[str, Any], heights: Sequence[float | None], across: Span, up: Span, colour: str) -> str:
    pieces, pen = [], "M"
    for x, y in zip(trace["x"], heights, strict=True):
        if y is None:
            pen = "M"
            continue
        right = LEFT + (WIDTH - LEFT - 4) * (x - across[0]) / (across[1] - across[0])
        down = 8 + (HEIGHT - BOTTOM - 8) * (up[1] - y) / (up[1] - up[0])
        pieces.append(f"{pen}{right:.1f} {down:.1f}")
        pen = "L"
    given = trace.get("line", {}).get("color", colour)
    return f'<path d="{"".join(pieces)}" fill="none" stroke="{given}" stroke-width="1.5" opacity="{trace.get("opacity", 1)}"/>'


def _labels(across: Span, up: Span, log: bool) -> str:
    top, bottom = (f"{10**v:.3g}" if log else f"{v:.4g}" for v in (up[1], up[0]))
    return (
        f'<g fill="currentColor" font-size="12"><text x="{LEFT - 6}" y="16" text-anchor="end">{top}</text>'
        f'<text x="{LEFT - 6}" y="{HEIGHT - BOTTOM}" text-anchor="end">{bottom}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{across[0]:g}</text>'
        f'<text x="{WIDTH - 4}" y="{HEIGHT - 6}" text-anchor="end">{across[1]:g}</text></g>'
    )
