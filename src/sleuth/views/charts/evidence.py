"""For each finding that has one, the curve that proves it."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.finding import Finding, Series
from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import line, line_layout, not_finite
from sleuth.views.charts.material import Material

# What runs along the axis, where it is not the steps: words of a series' name.
AXES = {"while the rate rises": "learning rate, as a power of ten", "by depth": "layers, from the input to the output"}


def evidence(material: Material, points: int) -> Iterator[Chart]:
    drawn: set[tuple[Series, ...]] = set()
    for number, finding in enumerate(material.report.findings if material.report else (), 1):
        series = tuple(s for s in finding.series if len(s.x) > 1)
        if series and series not in drawn:
            drawn.add(series)
            yield _chart(number, finding, series, points)


def chart_name(number: int) -> str:
    """Of the finding that stands at this place of the report, from 1."""
    return f"finding-{number}"


def _chart(number: int, finding: Finding, series: tuple[Series, ...], points: int) -> Chart:
    courses = [(s.name, np.array(s.x, dtype=np.float64), _values(s)) for s in series]
    data = [line(name, x, y, points) for name, x, y in courses]
    for _, x, y in courses:
        data += not_finite(x, y)
    axis = next((text for words, text in AXES.items() if words in series[0].name), "step")
    figure = {"data": data, "layout": line_layout(axis, series[0].name if len(series) == 1 else "", [y for *_, y in courses])}
    return Chart(chart_name(number), f"What shows it: {finding.name}", figure, group="evidence", height=260)


def _values(series: Series) -> np.ndarray:
    values = np.array([np.nan if y is None else y for y in series.y], dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values
