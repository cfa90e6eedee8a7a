"""Runs side by side: their curves in one picture, what they were made of, and the first step where they part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sleuth.core.recording.recording import Curve
from sleuth.store.following import FollowedRun
from sleuth.store.partings import tell
from sleuth.ui.options import differing, options_of
from sleuth.views.charts import POINTS, Chart
from sleuth.views.charts.figure import COLOURS, Trace, as_text, line_layout, smoothed

# Curves first that people look at first; the rest follow by name.
TITLES = {
    "loss": "Loss",
    "val_loss": "Validation loss",
    "lr": "Learning rate",
    "gradient_norm": "Gradient norm",
    "seconds": "Seconds a step",
    "process_bytes": "Memory of the process, in bytes",
}
# Told apart without colours too.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")


@dataclass(frozen=True)
class Side:
    name: str
    file: Path
    run: FollowedRun


def compare(sides: Sequence[Side]) -> dict[str, Any]:
    curves = [side.run.curves() for side in sides]
    options = [options_of(side.file) for side in sides]
    return {
        "partings": [_parting(sides, curves, other) for other in range(1, len(sides))],
        "options": [{"name": name, "values": values} for name, values in differing(options)],
        "same": sum(all(column.get(name) == value for column in options) for name, value in options[0].items()),
        "charts": list(_charts(sides, curves)),
    }


def _parting(sides: Sequence[Side], curves: Sequence[dict[str, Curve]], other: int) -> dict[str, Any]:
    """The first run against another."""
    told = tell((curves[0], curves[other]), (sides[0].file, sides[other].file))
    return {"first": sides[0].name, "other": sides[other].name, **told._asdict()}


def _charts(sides: Sequence[Side], curves: Sequence[dict[str, Curve]]) -> Iterator[Chart]:
    names = {name for found in curves for name in found}
    for place, name in enumerate([*(n for n in TITLES if n in names), *sorted(names - TITLES.keys())]):
        shown = [(number, found[name]) for number, found in enumerate(curves) if name in found]
        traces = [trace for number, curve in shown for trace in _traces(sides[number].name, number, curve)]
        layout = line_layout("step", TITLES.get(name, as_text(name)), [curve.values for _, curve in shown])
        yield Chart(f"curve-{place}", TITLES.get(name, name), {"data": traces, "layout": layout})


def _traces(name: str, number: int, curve: Curve) -> list[Trace]:
    """Of a noisy one the mean stands for the run, and its points lie faintly behind."""
    *behind, shown = smoothed(name, *curve, POINTS, COLOURS[number])
    over = {**shown, "name": as_text(name), "line": {**shown["line"], "dash": DASHES[number]}}
    return [*({**trace, "showlegend": False, "hoverinfo": "skip"} for trace in behind), over]
