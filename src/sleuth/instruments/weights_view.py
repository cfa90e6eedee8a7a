"""How weights look: a table, and a histogram of each parameter."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sleuth.instruments.columns import BLUE, GREY, RED, html_table, number, short, text_table
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.weights import ParameterWeights, WeightReport

HEAD = ("parameter", "shape", "mean", "std", "min", "max", "norm", "tiny", "")
COLUMNS = 4
# More pictures than this are too small; those with warnings come first.
MOST = 24


def table(report: "WeightReport") -> str:
    return text_table(HEAD, _rows(report), _closing(report))


def html(report: "WeightReport") -> str:
    return html_table(HEAD, _rows(report), _closing(report))


def _rows(report: "WeightReport") -> list[list[str]]:
    return [_row(p) for p in report.parameters]


def _row(p: "ParameterWeights") -> list[str]:
    numbers = (number(v) for v in (p.mean, p.std, p.min, p.max, p.norm))
    said = "; ".join(p.warnings) or ("" if p.trainable else "frozen")
    return [p.path, "×".join(map(str, p.shape)), *numbers, f"{p.tiny_share:.0%}" if p.tiny_share else "", said]


def _closing(report: "WeightReport") -> list[str]:
    count = sum(int(np.prod(p.shape)) for p in report.parameters)
    said = f"{len(report.warnings)} warnings" if report.warnings else "nothing unusual"
    return [f"{count:,} values in {len(report.parameters)} parameters: {said}", *report.notes]


def draw(report: "WeightReport") -> Any:
    chosen = {p.path for p in sorted(report.parameters, key=lambda p: (not p.warnings, len(p.shape) < 2))[:MOST]}
    shown = [p for p in report.parameters if p.path in chosen]
    rows = -(-len(shown) // COLUMNS)
    figure = new_figure(2.8 * min(COLUMNS, len(shown)), 1.9 * rows + 0.4)
    for place, parameter in enumerate(shown):
        _histogram(figure.add_subplot(rows, min(COLUMNS, len(shown)), place + 1), parameter)
    left = len(report.parameters) - len(shown)
    figure.suptitle("Distribution of the weights" + (f" ({left} more are not shown)" if left else ""), fontsize=10)
    return figure


def _histogram(axes: Any, parameter: "ParameterWeights") -> None:
    colour = RED if parameter.warnings else BLUE if parameter.trainable else GREY
    axes.stairs(parameter.counts, parameter.edges, fill=True, color=colour, alpha=0.8)
    if parameter.edges[0] <= 0 <= parameter.edges[-1]:
        axes.axvline(0, color="black", linewidth=0.5)
    axes.locator_params(axis="x", nbins=5)
    said = f"{parameter.mean:.2g} ± {parameter.std:.2g}"
    axes.set_title(f"{short(parameter.path)}\n{said}", fontsize=7, parse_math=False)
    axes.tick_params(labelsize=6)
    axes.set_yticks([])
