"""What the process holds, over the steps."""

from collections.abc import Iterator

from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import COLOURS, layout, line
from sleuth.views.charts.material import Material

NAMES = {"process_bytes": "held by the process"}
MEGABYTE = 1e6


def memory(material: Material, points: int) -> Iterator[Chart]:
    found = [(NAMES[name], curve) for name, curve in material.curves.items() if name in NAMES and len(curve.steps) > 1]
    if not found:
        return
    data = [
        line(name, curve.steps, curve.values / MEGABYTE, points, line={"color": COLOURS[place]})
        for place, (name, curve) in enumerate(found)
    ]
    axes = {**layout("step", "MB"), "showlegend": len(data) > 1}
    axes["yaxis"]["rangemode"] = "tozero"
    figure = {"data": data, "layout": axes}
    yield Chart(
        "memory-held",
        "Memory held",
        figure,
        "Pages of its own and tensors on a device; files that are mapped do not count.",
        "memory",
    )
