"""Layers × steps as colours: gradients, updates, activations, weights, and units that are silent."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sleuth.core.observation import Role
from sleuth.core.recording.recording import Table
from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import ALARM, as_text, layout, short, steps_of
from sleuth.views.charts.material import Material
from sleuth.views.charts.thinning import stretches, thin_grid

# A phone is some 400 pixels wide and a page 900: more columns would be thinner than a pixel.
COLUMNS = 300
# Cells of one map in all: thousands of layers get fewer columns each, and a page stays small.
CELLS = 24_000
# Stands for zero among logarithms: the page says "0" there.
ZERO = -99.0
ROW_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT, MOST_LABELS = 14, 200, 640, 40

MAPS = {
    Role.GRADIENT: ("Gradients", "root mean square of each gradient"),
    Role.ACTIVATION: ("Activations", "root mean square of what each layer puts out"),
}


def layers(material: Material, points: int) -> Iterator[Chart]:
    columns = max(min(COLUMNS, points // 3), 1)
    for role, (title, what) in MAPS.items():
        table = material.table(role)
        yield from _logarithmic(f"heat-{role.value}", title, what, table, material.rms(role), columns)
        if role is Role.GRADIENT:
            yield from _updates(material, columns)
    yield from _silent(material, columns)


def _updates(material: Material, columns: int) -> Iterator[Chart]:
    """Against the weights, where those were seen at the same step: a size of its own says little."""
    updates, weights = material.table(Role.UPDATE), material.table(Role.WEIGHT)
    rows = {step: row for row, step in enumerate(weights.steps.tolist())}
    places = {path: place for place, path in enumerate(weights.paths)}
    shared = [path for path in updates.paths if path in places]
    common = [row for row, step in enumerate(updates.steps.tolist()) if step in rows]
    if not shared or not common:
        return
    mine = [updates.paths.index(path) for path in shared]
    own = material.rms(Role.UPDATE)[np.ix_(common, mine)]
    there = [rows[step] for step in updates.steps[common].tolist()]
    against = material.rms(Role.WEIGHT)[np.ix_(there, [places[path] for path in shared])]
    ratio = np.divide(own, against, out=np.full_like(own, np.nan), where=against > 0)
    table = Table(updates.steps[common], tuple(shared), updates.columns, updates.values[np.ix_(common, mine)])
    what = "update of each weight against the weight itself, as root mean squares; near 1e-3 is usual"
    yield from _logarithmic("heat-update", "Updates", what, table, ratio, columns)


def _logarithmic(name: str, title: str, what: str, table: Table, sizes: np.ndarray, columns: int) -> Iterator[Chart]:
    if not table.paths or len(table.steps) < 2:
        return
    broken = (np.nan_to_num(table.column("nans")) + np.nan_to_num(table.column("infs"))) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(sizes > 0, np.log10(sizes), np.where(sizes == 0, ZERO, np.nan))
    begins = stretches(table.column("count"), min(columns, max(CELLS // len(table.paths), 2)))
    steps, ill = table.steps[begins], np.logical_or.reduceat(broken, begins, axis=0)
    cells = np.where(ill, np.nan, thin_grid(np.where(broken, np.nan, logs), begins))
    data = [_map(steps, table.paths, cells, digits=2) | _decades(cells), *_not_finite(steps, table.paths, ill)]
    meta = {"logarithmic": True}
    note = what[:1].upper() + what[1:] + "."
    note += " Red: NaN or Inf." if ill.any() else ""
    note += " Where steps share a column, the most unusual one is shown." if len(steps) < len(table.steps) else ""
    figure = {"data": data, "layout": _layout(table.paths, meta)}
    yield Chart(name, title, figure, note, "layers", _height(len(table.paths)))


def _silent(material: Material, columns: int) -> Iterator[Chart]:
    grid = material.silent
    if len(grid.steps) < 2:
        return
    begins = stretches(grid.values, columns)
    trace = _map(grid.steps[begins], grid.paths, thin_grid(grid.values, begins), digits=3)
    trace |= {"zmin": 0, "zmax": 1, "colorscale": "Cividis", "colorbar": _colour_bar({"tickformat": ".0%"})}
    trace["hovertemplate"] = "%{y}<br>step %{x}: %{z:.0%} silent<extra></extra>"
    note = "Share of the units of each rectified layer that put out zero for every sample of a look."
    yield Chart(
        "heat-dead",
        "Silent units",
        {"data": [trace], "layout": _layout(grid.paths, {})},
        note,
        "layers",
        _height(len(grid.paths)),
    )


def _map(steps: np.ndarray, paths: tuple[str, ...], cells: np.ndarray, digits: int) -> dict[str, Any]:
    rounded = np.where(np.isfinite(cells), np.round(cells, digits), np.nan).T
    return {
        "type": "heatmap",
        "x": steps_of(steps),
        "y": [as_text(path) for path in paths],
        "z": [[None if v != v else v for v in row] for row in rounded.tolist()],
        "colorscale": "Viridis",
        "hoverongaps": False,
    }


def _decades(cells: np.ndarray) -> dict[str, Any]:
    known = cells[np.isfinite(cells) & (cells > ZERO)]
    # A few cells that stick out stay the brightest; the others must not look all the same because of them.
    low, high = np.quantile(known, (0.01, 0.99)).tolist() if len(known) else (-1.0, 0.0)
    low, high = (low - 0.5, high + 0.5) if high - low < 1 else (low, high)
    ticks = np.unique(np.linspace(np.ceil(low), np.floor(high), 6).round()).astype(int).tolist()
    if len(ticks) < 2:
        ticks = np.round(np.linspace(low, high, 4), 2).tolist()
    texts = [f"{10.0**tick:.0e}".replace("e-0", "e-").replace("e+0", "e") for tick in ticks]
    bar = _colour_bar({"tickvals": ticks, "ticktext": texts})
    return {"zmin": round(low, 2), "zmax": round(high, 2), "colorbar": bar}


def _colour_bar(options: dict[str, Any]) -> dict[str, Any]:
    return {"thickness": 10, "outlinewidth": 0, "xpad": 4, **options}


def _not_finite(steps: np.ndarray, paths: tuple[str, ...], ill: np.ndarray) -> list[dict[str, Any]]:
    if not ill.any():
        return []
    trace = _map(steps, paths, np.where(ill, 1.0, np.nan), digits=0)
    hover = "%{y}<br>step %{x}: NaN or Inf<extra></extra>"
    return [{**trace, "colorscale": [[0, ALARM], [1, ALARM]], "showscale": False, "hovertemplate": hover, "customdata": []}]


def _layout(paths: tuple[str, ...], meta: dict[str, Any]) -> dict[str, Any]:
    every = -(-len(paths) // MOST_LABELS)
    labelled = paths[::every]
    axis = {
        "type": "category",
        "autorange": "reversed",
        "automargin": True,
        "tickvals": [as_text(path) for path in labelled],
        "ticktext": [short(path) for path in labelled],
        "tickfont": {"size": 10},
        "showgrid": False,
    }
    base = layout("step", "", meta={"names": True, **meta})
    return {**base, "yaxis": axis, "hovermode": "closest", "showlegend": False}


def _height(rows: int) -> int:
    return min(max(90 + ROW_HEIGHT * rows, LEAST_HEIGHT), MOST_HEIGHT)
