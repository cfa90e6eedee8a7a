"""How the values of a tensor lie around their mean, over time: where nobody counted how large each of them is."""

from typing import Any

import numpy as np

from sleuth.core.recording.recording import Table, evenly
from sleuth.views.charts.figure import COLOURS, as_text, layout, numbers, steps_of
from sleuth.views.charts.thinning import stretches

NOTE = "From the least to the largest value, within one standard deviation of the mean, and the mean itself."
MOST_TENSORS = 60
MOST_MOMENTS = 80
WIDE, NARROW = "rgba(59,130,196,.15)", "rgba(59,130,196,.35)"


def spread(table: Table, points: int) -> dict[str, Any]:
    """One group of traces a tensor; the page offers the choice."""
    chosen = evenly(len(table.paths), MOST_TENSORS)
    mean, std, low, high = (table.column(name)[:, chosen] for name in ("mean", "std", "min", "max"))
    begins = stretches(mean, min(MOST_MOMENTS, points))
    with np.errstate(invalid="ignore"):
        least, largest = np.fmin.reduceat(low, begins, axis=0), np.fmax.reduceat(high, begins, axis=0)
    x = steps_of(table.steps[begins])
    data = []
    for place, path in enumerate(table.paths[i] for i in chosen):
        middle, width = mean[begins, place], std[begins, place]
        lines = (least[:, place], largest[:, place], middle - width, middle + width, middle)
        data += _traces(as_text(path), x, lines, visible=place == 0)
    base = layout("step", "", meta={"choose": "Tensor"})
    return {"data": data, "layout": {**base, "showlegend": False}}


def _traces(name: str, x: list[int | float], lines: tuple[np.ndarray, ...], *, visible: bool) -> list[dict[str, Any]]:
    looks: tuple[dict[str, Any], ...] = (
        {"name": "least", "line": {"width": 0}},
        {"name": "largest", "line": {"width": 0}, "fill": "tonexty", "fillcolor": WIDE},
        {"name": "mean − deviation", "line": {"width": 0}},
        {"name": "mean + deviation", "line": {"width": 0}, "fill": "tonexty", "fillcolor": NARROW},
        {"name": "mean", "line": {"color": COLOURS[0]}},
    )
    shared = {"type": "scatter", "mode": "lines", "x": x, "legendgroup": name, "visible": visible}
    return [{**shared, **look, "y": numbers(line, 4)} for look, line in zip(looks, lines, strict=True)]
