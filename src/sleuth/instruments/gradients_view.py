"""How gradients look: a table, and their flow along the depth of the model."""

from typing import TYPE_CHECKING, Any

from sleuth.instruments.columns import BLUE, ORANGE, RED, html_table, name_axis, number, text_table
from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.instruments.gradients import GradientReport

HEAD = ("parameter", "shape", "norm", "mean |g|", "max |g|", "zeros", "")
WORDS = {"fine": "", "missing": "missing", "nan": "NaN", "inf": "Inf"}


def table(report: "GradientReport") -> str:
    return text_table(HEAD, _rows(report), _closing(report))


def html(report: "GradientReport") -> str:
    return html_table(HEAD, _rows(report), _closing(report))


def _rows(report: "GradientReport") -> list[list[str]]:
    return [
        [
            p.path,
            "×".join(map(str, p.shape)),
            number(p.norm),
            number(p.mean),
            number(p.largest),
            str(p.zeros or ""),
            WORDS.get(p.state, p.state),
        ]
        for p in report.parameters
    ]


def _closing(report: "GradientReport") -> list[str]:
    of = "" if report.loss is None else f", at a loss of {report.loss:.4g}"
    fine = ["Every parameter has a finite gradient of a usual size."]
    return [f"norm of all {number(report.norm)}{of}", *(report.diagnosis or fine), *report.notes]


def draw(report: "GradientReport") -> Any:
    """Mean and largest size of each parameter's gradient, first layer to the left; what is ill is marked below."""
    found = report.parameters
    figure = new_figure(min(14, max(5.5, 2.5 + 0.22 * len(found))), 4.2)
    axes = figure.add_subplot()
    places = range(len(found))
    for values, colour, label in (([p.largest for p in found], ORANGE, "largest"), ([p.mean for p in found], BLUE, "mean")):
        known = [(i, v) for i, v in zip(places, values, strict=True) if v]
        axes.plot([i for i, _ in known], [v for _, v in known], "o-", color=colour, markersize=4, linewidth=1, label=label)
    if any(p.mean for p in found):
        axes.set_yscale("log")
    ill = [(i, p.state) for i, p in enumerate(found) if p.state != "fine"]
    for i, state in ill:
        axes.axvspan(i - 0.5, i + 0.5, color=RED, alpha=0.15, linewidth=0)
        axes.text(
            i,
            0.98,
            WORDS.get(state, state),
            rotation=90,
            ha="center",
            va="top",
            fontsize=7,
            color=RED,
            transform=axes.get_xaxis_transform(),
        )
    name_axis(axes, [p.path for p in found])
    axes.set_ylabel("size of the gradient")
    axes.set_title("Gradient flow, first layer to the left")
    axes.legend(frameon=False)
    axes.grid(axis="y", alpha=0.3)
    return figure
