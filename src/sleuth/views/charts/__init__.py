"""Charts of a run as plain data, for the report's page and for the dashboard alike. Nothing here needs plotly.

    charts(recording, report, points=1000) -> list[Chart]   all of them, in the order of the page
    CHARTS[group](material, points) -> Iterator[Chart]      one section: evidence, curves, layers, flow, histograms, time, memory
    material = Material(recording, report)                  reads each table of the recording once, when first asked

`recording` may be None (then only what the report itself holds is drawn), and so may `report` (then there is no evidence).
A run that is still going on is read anew by a new Material. A chart that has nothing to show is not there.

`points` bounds what a line holds. Of each stretch of steps the least and the largest value stay, so a spike of one step is never
lost; of heat maps, which get at most a few hundred columns, each cell is the value farthest from the tensor's middle.

A `Chart` has name (unique among those of one call, fit for an id), title and note (plain text), group, height (pixels) and
figure: {"data": [...], "layout": {...}} as plotly takes it, ready for json.dumps(…, allow_nan=False): missing values are None.
Names of layers stand in it with plotly's own markup defused (`figure.as_text`); in a page `webpage.frames.as_script` makes JSON
of it that cannot leave its script element. Colours of text, grid and background are left to the page: `charts.js` beside this
file takes them from its CSS variables --ink, --grid, --ground. sleuthCharts.draw(box, figure) draws, or draws anew and keeps zoom
and choices.
"""

from collections.abc import Callable, Iterator, Mapping

from sleuth.core.recording.recording import Recording
from sleuth.core.report import Report
from sleuth.views.charts.chart import Chart, Figure
from sleuth.views.charts.curves import curves
from sleuth.views.charts.evidence import evidence
from sleuth.views.charts.flow import flow
from sleuth.views.charts.histograms import histograms
from sleuth.views.charts.layers import layers
from sleuth.views.charts.material import Material
from sleuth.views.charts.memory import memory
from sleuth.views.charts.time import time

__all__ = ["CHARTS", "POINTS", "Chart", "Figure", "Material", "charts"]

POINTS = 1000

CHARTS: Mapping[str, Callable[[Material, int], Iterator[Chart]]] = {
    make.__name__: make for make in (evidence, curves, layers, flow, histograms, time, memory)
}


def charts(recording: Recording | None, report: Report | None = None, points: int = POINTS) -> list[Chart]:
    material = Material(recording, report)
    return [chart for make in CHARTS.values() for chart in make(material, points)]
