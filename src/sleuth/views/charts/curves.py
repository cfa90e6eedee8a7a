"""Over the steps: losses, what was logged, rates, gradient norms."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sleuth.core.recording.recording import Curve
from sleuth.core.stage import Severity
from sleuth.views.charts.chart import Chart
from sleuth.views.charts.figure import ALARM, COLOURS, as_text, line, line_layout, not_finite, smoothed
from sleuth.views.charts.material import Material

OPTIMISER = re.compile(r"^optimiser\d+\.")
OURS = {"lr": "learning rate", "gradient_norm": "gradient norm"}
# What the charts of time and memory show.
ELSEWHERE = ("seconds", "process_bytes")
# A run may log a hundred numbers: the first ones are drawn, and the note says so.
MOST_METRICS = 12


def curves(material: Material, points: int) -> Iterator[Chart]:
    found = {name: curve for name, curve in material.curves.items() if np.isfinite(curve.values).any()}
    grouped: dict[str, dict[str, Curve]] = {}
    for name, curve in found.items():
        if (base := _base(name)) is not None:
            grouped.setdefault(base, {})[name] = curve
    grouped = {base: group for base, group in grouped.items() if max(len(curve.steps) for curve in group.values()) > 1}
    first = [base for base in ("loss", "lr", "gradient_norm") if base in grouped]
    others = [base for base in grouped if base not in first]
    for number, base in enumerate(first + others[:MOST_METRICS]):
        group = _without_twins(dict(sorted(grouped[base].items(), key=lambda item: "val_" in item[0])))
        name = base.replace("_", "-") if base in first else f"metric-{number}"
        yield _chart(name, base, group, points, material, left_out=others[MOST_METRICS:] if base == "loss" else [])


def _base(name: str) -> str | None:
    """Training and validation, and those of several optimisers, are drawn together."""
    plain = OPTIMISER.sub("", name)
    if plain.split(".")[0] in ELSEWHERE:
        return None
    return re.sub(r"^(seen_)?(val_|logged_)?", "", plain)


def _chart(name: str, base: str, group: Mapping[str, Curve], points: int, material: Material, left_out: list[str]) -> Chart:
    data: list[dict[str, Any]] = []
    for place, (label, curve) in enumerate(group.items()):
        colour = COLOURS[place % len(COLOURS)]
        if base == "lr":
            data.append(line(_label(label), curve.steps, curve.values, points, line={"color": colour}))
        else:
            data += smoothed(_label(label), curve.steps, curve.values, points, colour)
        data += not_finite(curve.steps, curve.values)
    title = OURS.get(base, base)
    layout = line_layout("step", title, [curve.values for curve in group.values()])
    if base == "lr":
        layout["yaxis"]["rangemode"] = "tozero"
    if base == "loss":
        layout |= _beginnings(material)
    longest = max(len(curve.steps) for curve in group.values())
    notes = [f"Of {longest:,} steps the least and the largest of each stretch are drawn."] if longest > points else []
    notes += [f"What was logged and is not drawn: {', '.join(left_out)}."] if left_out else []
    return Chart(name, title[:1].upper() + title[1:], {"data": data, "layout": layout}, " ".join(notes), "curves")


def _without_twins(group: dict[str, Curve]) -> dict[str, Curve]:
    """What the loop computed and the user then logged is one curve."""

    def is_twin(name: str) -> bool:
        said = group.get(name.removeprefix("seen_")) if name.startswith("seen_") else None
        return said is not None and np.allclose(said.values[-3:], group[name].values[-3:], rtol=1e-3, equal_nan=True)

    return {name: curve for name, curve in group.items() if not is_twin(name)}


def _label(name: str) -> str:
    plain = OPTIMISER.sub("", name)
    front = f"optimiser {found.group()[9:-1]}, " if (found := OPTIMISER.match(name)) else ""
    known = plain.removeprefix("seen_")
    end = ", by the loop" if known != plain else ""
    if known.startswith("val_"):
        return f"{front}validation {known.removeprefix('val_')}{end}"
    return front + OURS.get(known, known.replace("logged_", "evaluated ")) + end


def _beginnings(material: Material) -> dict[str, Any]:
    """Where the culprits were first seen."""
    culprits = [c.finding for c in material.report.culprits] if material.report else []
    seen = [(f.first_step, f.name) for f in culprits if f.first_step and f.severity is not Severity.HINT][:3]
    return {
        "shapes": [
            {
                "type": "line",
                "x0": step,
                "x1": step,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": ALARM, "width": 1, "dash": "dot"},
                "label": {
                    "text": as_text(name),
                    "textposition": "end",
                    "textangle": 0,
                    "xanchor": "auto",
                    "font": {"size": 10, "color": ALARM},
                },
            }
            for step, name in seen
        ]
    }
