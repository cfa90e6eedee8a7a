"""How activations look: a table, heat maps of samples by units, and mean, spread and sparsity along the depth."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.instruments.columns import BLUE, GREEN, ORANGE, html_table, name_axis, number, short, text_table
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.activations import ActivationReport, LayerActivation

HEAD = ("layer", "shape", "mean", "std", "min", "max", "zero", "gradient", "")
COLUMNS = 4
MOST_MAPS = 12
# Of a heat map: more cannot be told apart.
SAMPLES, UNITS = 48, 96


def table(report: "ActivationReport") -> str:
    return text_table(HEAD, [_row(layer) for layer in report.layers], _closing(report))


def html(report: "ActivationReport") -> str:
    return html_table(HEAD, [_row(layer) for layer in report.layers], _closing(report))


def _row(layer: "LayerActivation") -> list[str]:
    known = layer.statistics
    numbers = (number(v) for v in (known.mean, known.std, known.min, known.max))
    gradient = "" if layer.gradient is None else f"{layer.gradient.rms:.2g}"
    zero = f"{layer.sparsity:.0%}" if layer.sparsity else ""
    return [layer.path, "×".join(map(str, layer.shape)), *numbers, zero, gradient, "; ".join(layer.warnings)]


def _closing(report: "ActivationReport") -> list[str]:
    said = f"{len(report.warnings)} warnings" if report.warnings else "nothing unusual"
    return [
        f"{len(report.layers)} values of {report.samples} samples: {said}. The gradient is a root mean square.",
        *report.notes,
    ]


def draw(report: "ActivationReport") -> Any:
    shown = [layer for layer in _spread(report) if layer.values is not None]
    rows = -(-len(shown) // COLUMNS)
    figure = new_figure(11, 1.9 * rows + 3.2)
    upper, lower = figure.subfigures(2, 1, height_ratios=[max(1.9 * rows, 0.1), 3.2]) if rows else (None, figure)
    if upper is not None:
        for place, layer in enumerate(shown):
            _heat_map(upper.add_subplot(rows, COLUMNS, place + 1), layer)
        upper.suptitle("Samples (down) by units (across); red is positive, blue negative", fontsize=9)
    names = [layer.path for layer in report.layers]
    courses = (
        ("mean", BLUE, [layer.mean for layer in report.layers]),
        ("spread (std)", ORANGE, [layer.std for layer in report.layers]),
        ("share of zeros", GREEN, [layer.sparsity for layer in report.layers]),
    )
    for place, (title, colour, values) in enumerate(courses):
        axes = lower.add_subplot(1, 3, place + 1)
        axes.bar(range(len(names)), values, color=colour)
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        name_axis(axes, names)
    return figure


def _spread(report: "ActivationReport") -> list["LayerActivation"]:
    """Evenly over the model, first and last included."""
    if len(report.layers) <= MOST_MAPS:
        return list(report.layers)
    return [report.layers[i] for i in np.linspace(0, len(report.layers) - 1, MOST_MAPS).round().astype(int)]


def _heat_map(axes: Any, layer: "LayerActivation") -> None:
    assert layer.values is not None
    values = np.moveaxis(layer.values, layer.unit_axis, -1).astype(np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    flat = values.reshape(values.shape[0], -1, values.shape[-1]).mean(axis=1) if values.ndim > 1 else values[None]
    flat = flat[:SAMPLES, :UNITS]
    limit = float(np.nanmax(np.abs(flat))) if np.isfinite(flat).any() else 1.0
    axes.imshow(flat, aspect="auto", cmap="RdBu_r", vmin=-limit or -1, vmax=limit or 1, interpolation="nearest")
    axes.set_title(short(layer.path), fontsize=8, parse_math=False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(f"± {limit:.2g}", fontsize=6, labelpad=2)
