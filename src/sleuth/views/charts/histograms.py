"""How large the single values of weights and gradients are, over time."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.observation import Role
from sleuth.core.recording.recording import Histograms
from sleuth.core.statistics import EXPONENTS_PER_BIN, LOWEST_EXPONENT
from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import as_text, layout, steps_of
from sleuth.views.charts.material import Material
from sleuth.views.charts.spread import NOTE as SPREAD
from sleuth.views.charts.spread import spread

TITLES = {Role.WEIGHT: "Sizes of weights", Role.GRADIENT: "Sizes of gradients"}
NOTE = (
    "Each column is one moment; the colour tells which share of the values is of that size. "
    "float16 loses what is smaller than 6e-8 and has no room for more than 65504."
)
# Beside all tensors together; each is one choice in the page.
MOST_TENSORS = 60
MOST_MOMENTS = 80


def histograms(material: Material, points: int) -> Iterator[Chart]:
    for role, title in TITLES.items():
        found = material.histograms(role)
        if len(found.steps) >= 2 and found.counts.any():
            yield Chart(f"sizes-{role.value}", title, _figure(found, points), NOTE, "histograms", 300)
        elif len(material.table(role).steps) >= 2:
            yield Chart(
                f"spread-{role.value}", f"Spread of {role.value}s", spread(material.table(role), points), SPREAD, "histograms"
            )


def _figure(found: Histograms, points: int) -> dict[str, Any]:
    moments = np.unique(np.linspace(0, len(found.steps) - 1, min(len(found.steps), MOST_MOMENTS, points)).astype(int))
    used = np.flatnonzero(found.counts.any(axis=(0, 1)))
    bins = range(int(used[0]), int(used[-1]) + 1)
    counts = found.counts[moments][:, :, bins.start : bins.stop]
    chosen = np.unique(np.linspace(0, len(found.paths) - 1, min(len(found.paths), MOST_TENSORS)).astype(int)).tolist()
    names = ["all tensors together", *(found.paths[place] for place in chosen)]
    grids = [counts.sum(axis=1), *(counts[:, place] for place in chosen)]
    steps, labels = steps_of(found.steps[moments]), [_label(place) for place in bins]
    data = [
        _trace(name, steps, labels, grid, visible=not place) for place, (name, grid) in enumerate(zip(names, grids, strict=True))
    ]
    base = layout("step", "", meta={"choose": "Tensor"})
    axis = {"type": "category", "automargin": True, "tickfont": {"size": 10}, "showgrid": False}
    return {"data": data, "layout": {**base, "yaxis": axis, "hovermode": "closest", "showlegend": False}}


def _trace(name: str, steps: list[int | float], labels: list[str], grid: np.ndarray, *, visible: bool) -> dict[str, Any]:
    total = grid.sum(axis=1, keepdims=True)
    shares = np.divide(grid, total, out=np.zeros(grid.shape), where=total > 0).T
    return {
        "type": "heatmap",
        "name": as_text(name),
        "visible": visible,
        "x": steps,
        "y": labels,
        "z": [[round(v, 3) if v else None for v in row] for row in shares.tolist()],
        "zmin": 0,
        "zmax": 1,
        "colorscale": "Viridis",
        "hoverongaps": False,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "xpad": 4, "tickformat": ".0%"},
        "hovertemplate": "step %{x}<br>%{y}: %{z:.1%} of the values<extra></extra>",
    }


def _label(place: int) -> str:
    low = LOWEST_EXPONENT + EXPONENTS_PER_BIN * place
    return f"{2.0**low:.0e} to {2.0 ** (low + EXPONENTS_PER_BIN):.0e}".replace("e-0", "e-").replace("e+0", "e+")
