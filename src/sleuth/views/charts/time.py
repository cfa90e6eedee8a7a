"""How long steps take, and what in them."""

import re
from collections.abc import Iterator

import numpy as np

from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import COLOURS, as_text, layout, line_layout, smoothed
from sleuth.views.charts.material import Material

PHASE = re.compile(r"^(optimiser\d+\.)?seconds\.(?P<phase>.+)$")
MILLISECONDS = 1e3


def time(material: Material, points: int) -> Iterator[Chart]:
    steps = {name: curve for name, curve in material.curves.items() if name.split(".")[-1] == "seconds"}
    if steps:
        values = [curve.values * MILLISECONDS for curve in steps.values()]
        data = [
            trace
            for place, ((name, curve), value) in enumerate(zip(steps.items(), values, strict=True))
            for trace in smoothed(_label(name), curve.steps, value, points, COLOURS[place % len(COLOURS)])
        ]
        figure = {"data": data, "layout": line_layout("step", "milliseconds", values)}
        yield Chart(
            "time-steps", "Time of each step", figure, "Looks of sleuth are part of the steps that were looked at.", "time"
        )
    phases = {found["phase"]: curve for name, curve in material.curves.items() if (found := PHASE.match(name))}
    if phases:
        means = {phase: float(np.nanmean(curve.values)) * MILLISECONDS for phase, curve in phases.items()}
        bar = {"type": "bar", "orientation": "h", "y": [as_text(p) for p in means], "x": [round(m, 4) for m in means.values()]}
        bar["hovertemplate"] = "%{y}: %{x:.3g} ms<extra></extra>"
        base = layout("milliseconds a step, in the mean", "")
        base["yaxis"] = {"type": "category", "automargin": True, "autorange": "reversed"}
        base["hovermode"] = "closest"
        yield Chart("time-phases", "Time by phase", {"data": [bar], "layout": base}, "", "time", 110 + 26 * len(means))


def _label(name: str) -> str:
    return "a step" if name == "seconds" else name.split(".")[0].replace("optimiser", "a step of optimiser ")
