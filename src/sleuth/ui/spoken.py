"""A chart in words, for whoever cannot see it."""

from collections.abc import Iterator, Mapping
from typing import Any

from sleuth.views.charts.chart import Chart
from sleuth.views.facts import number

# Beyond this a list is no help to a listener.
MOST_LINES = 8


def spoken(chart: Chart) -> str:
    traces = chart.figure["data"]
    told = [text for trace in traces for text in _trace(trace)]
    more = [f"and {len(told) - MOST_LINES} more"] if len(told) > MOST_LINES else []
    return "; ".join([chart.title, *told[:MOST_LINES], *more])


def _trace(trace: Mapping[str, Any]) -> Iterator[str]:
    if trace.get("z") is not None:
        yield f"{len(trace['z'])} rows by {len(trace['z'][0]) if trace['z'] else 0} columns of colour"
        return
    name, xs, ys = trace.get("name") or "values", trace.get("x"), trace.get("y")
    known = [
        (x, y) for x, y in zip(xs or (), ys or (), strict=False) if isinstance(x, int | float) and isinstance(y, int | float)
    ]
    if known:
        (begin, first), (end, last) = known[0], known[-1]
        values = [y for _, y in known]
        low, high = number(min(values)), number(max(values))
        yield f"{name}: {number(first)} at {number(begin)}, {number(last)} at {number(end)}, between {low} and {high}"
