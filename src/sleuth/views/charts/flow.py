"""How large gradients are, layer by layer, from the input to the output."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.observation import Role
from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import COLOURS, as_text, layout, numbers, short
from sleuth.views.charts.material import Material

MOST_LABELS = 16
FAINT = "rgba(127,127,127,.25)"


def flow(material: Material, points: int) -> Iterator[Chart]:
    table, sizes = material.table(Role.GRADIENT), material.rms(Role.GRADIENT)
    if len(table.paths) < 3:
        return
    kept = [place for place in range(len(table.paths)) if (sizes[:, place] > 0).any()]
    kept = [place for place in kept if not table.paths[place].endswith("bias")] or kept
    if len(kept) < 3:
        return
    paths, sizes = [table.paths[place] for place in kept], sizes[:, kept]
    floor = 10.0 ** (np.floor(np.log10(sizes[sizes > 0].min())) - 1)
    shown = np.where(sizes == 0, floor, sizes)
    x = list(range(len(paths)))
    band = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
    data: list[dict[str, Any]] = [
        {**band, "y": numbers(np.nanmin(shown, axis=0)), "showlegend": False},
        {**band, "y": numbers(np.nanmax(shown, axis=0)), "fill": "tonexty", "fillcolor": FAINT, "name": "least to largest"},
    ]
    names = [as_text(path) for path in paths]
    for row, colour in zip(_moments(sizes), (COLOURS[0], COLOURS[2], COLOURS[1]), strict=False):
        data.append(_moment(int(table.steps[row]), names, sizes[row], shown[row], colour))
    yield Chart("gradient-flow", "Gradient flow by depth", {"data": data, "layout": _layout(paths)}, NOTE, "flow", 360)


def _moment(step: int, names: list[str], sizes: np.ndarray, shown: np.ndarray, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"step {step:,}",
        "x": list(range(len(names))),
        "y": numbers(shown),
        "customdata": ["0" if size == 0 else f"{size:.1e}" for size in sizes.tolist()],
        "text": names,
        "hovertemplate": "%{text}: %{customdata}",
        "line": {"color": colour},
        "connectgaps": True,
    }


NOTE = (
    "Root mean square of the gradient of each weight, in the order of the model. "
    "A line that falls towards the left fades on its way to the first layers. "
    "An exact zero stands below all others."
)


def _moments(sizes: np.ndarray) -> list[int]:
    """The first, the middle and the last look that saw at least half of them."""
    seen = np.isfinite(sizes).sum(axis=1)
    full = np.flatnonzero(seen >= 0.5 * seen.max())
    return sorted({int(full[0]), int(full[len(full) // 2]), int(full[-1])})


def _layout(paths: list[str]) -> dict[str, Any]:
    every = -(-len(paths) // MOST_LABELS)
    base = layout("", "gradient", log=True)
    axis = {"tickvals": list(range(0, len(paths), every)), "ticktext": [short(path) for path in paths[::every]]}
    return {**base, "xaxis": {**axis, "automargin": True, "tickangle": -40, "tickfont": {"size": 10}}}
