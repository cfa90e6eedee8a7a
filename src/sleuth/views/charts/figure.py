"""The parts of which figures are made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sleuth.views.charts.thinning import thin_line

# Told apart by people who see few colours, and of middle brightness: readable on white and on black.
COLOURS = ("#3b82c4", "#e08214", "#2f9e6e", "#c2539d", "#8c6bb1", "#b0912f", "#4fb0c6", "#7f7f7f")
ALARM = "#d9534f"
# Positive values that span more than this are read on a logarithmic axis.
WIDE = 1e3
# A line of more points than this is noise to the eye: its running mean is drawn over it.
NOISY = 120
LONGEST_NAME = 26
# Of NaN, in one curve; a scaler that skips a step now and then leaves many short ones.
MOST_STRETCHES = 200

Trace = dict[str, Any]
Layout = dict[str, Any]


def as_text(name: str) -> str:
    """plotly reads tags and entities in texts: a layer's name must not be read so."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(name: str) -> str:
    """Its end says more: the beginning is mostly the same for all."""
    return as_text(name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :])


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | int | None]:
    """As JSON holds them, in few letters; what is not finite becomes None."""
    return [_number(float(v), digits) for v in values]


def _number(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def steps_of(steps: np.ndarray) -> list[int | float]:
    return [int(s) if s == int(s) else float(f"{s:.5g}") for s in steps.tolist()]


def line(name: str, steps: np.ndarray, values: np.ndarray, points: int, **options: Any) -> Trace:
    x, y = thin_line(np.asarray(steps), np.asarray(values, dtype=np.float64), points)
    mode = "lines+markers" if len(x) < 40 else "lines"
    return {"type": "scatter", "mode": mode, "name": as_text(name), "x": steps_of(x), "y": numbers(y), **options}


def smoothed(name: str, steps: np.ndarray, values: np.ndarray, points: int, colour: str) -> list[Trace]:
    """The line itself; of a long one faintly, with its running mean above it."""
    known = np.isfinite(values)
    if known.sum() <= NOISY:
        return [line(name, steps, values, points, line={"color": colour})]
    window = max(int(known.sum()) // 50, 5)
    raw = line(name, steps, values, points, line={"color": colour, "width": 1}, opacity=0.4)
    mean = running_mean(values[known], window)
    over = line(f"{name}, mean of {window:,} steps", steps[known], mean, points, line={"color": colour, "width": 2})
    return [raw, {**over, "mode": "lines"}]


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Of the `window` values up to each; of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(ends - window, 0)
    return (sums[ends] - sums[begins]) / (ends - begins)


def not_finite(steps: np.ndarray, values: np.ndarray) -> list[Trace]:
    """Red where a curve was NaN or Inf, at the height where it was last seen: a cross at both ends of each stretch."""
    broken = np.isnan(values)
    if not broken.any() or broken.all():
        return []
    edges = np.diff(np.concatenate([[False], broken, [False]]).astype(np.int8))
    begins, ends = np.flatnonzero(edges == 1)[:MOST_STRETCHES], np.flatnonzero(edges == -1)[:MOST_STRETCHES] - 1
    x: list[float | None] = []
    y: list[float | None] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        height = values[begin - 1] if begin else values[~broken][0]
        places = [begin, end] if end > begin else [begin]
        x += [*steps_of(steps[places]), None]
        y += [*numbers([height] * len(places)), None]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "NaN or Inf",
            "x": x,
            "y": y,
            "line": {"color": ALARM, "dash": "dot"},
            "marker": {"symbol": "x", "size": 8, "color": ALARM},
            "hovertemplate": "NaN or Inf",
            "legendgroup": "broken",
        }
    ]


def layout(x: str, y: str, *, log: bool = False, meta: Mapping[str, Any] | None = None, **options: Any) -> Layout:
    """`meta.scale`: the page offers a choice between a linear and a logarithmic axis."""
    return {
        "xaxis": {"title": {"text": x}},
        "yaxis": {
            "title": {"text": y, "standoff": 10},
            "type": "log" if log else "linear",
            "exponentformat": "power",
            "automargin": True,
            "nticks": 7,
        },
        "margin": {"l": 56, "r": 12, "t": 12, "b": 44},
        "hovermode": "x unified",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        "colorway": list(COLOURS),
        "meta": dict(meta or {}),
        **options,
    }


def is_wide(*values: np.ndarray) -> bool:
    """Would a linear axis hide most of it?"""
    joined = np.concatenate([np.asarray(v, dtype=np.float64).ravel() for v in values]) if values else np.zeros(0)
    finite = joined[np.isfinite(joined)]
    return bool(len(finite)) and bool((finite > 0).all()) and float(finite.max() / finite.min()) > WIDE


def line_layout(x: str, y: str, curves: Sequence[np.ndarray]) -> Layout:
    finite = [c[np.isfinite(c)] for c in curves]
    positive = any(len(c) for c in finite) and all((c > 0).all() for c in finite)
    return layout(x, y, log=is_wide(*curves), meta={"scale": bool(positive)})
