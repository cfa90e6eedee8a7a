"""A graph as SVG that reads on light and dark pages, and as a figure."""

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Any

from sleuth.instruments.graph_layout import Box, Wire
from sleuth.instruments.result import new_figure

# Fill on light and on dark pages, by family; colours of Paul Tol's that differ in brightness too.
FILLS = {
    "conv": ("#cfe3f5", "#1f4e79"),
    "linear": ("#e3d7f2", "#4b3573"),
    "recurrent": ("#f8dcc4", "#7a4a1d"),
    "attention": ("#f9d3dc", "#7a2f45"),
    "embedding": ("#cdebe6", "#1d5c52"),
    "activation": ("#dcefcf", "#3a5f22"),
    "pool": ("#f6ecc0", "#665712"),
    "norm": ("#e6e6e6", "#444444"),
    "batchnorm": ("#e6e6e6", "#444444"),
    "input": ("#ffffff", "#222222"),
    "operation": ("#ffffff", "#222222"),
}
OTHER = ("#f0f0f0", "#3a3a3a")
STYLE = """
.sleuth-graph text{font:12px system-ui,sans-serif;fill:#222;text-anchor:middle}
.sleuth-graph .small{font-size:10px;fill:#555}
.sleuth-graph .title{font-weight:600}
.sleuth-graph .wire{fill:none;stroke:#777;stroke-width:1.3}
.sleuth-graph .skip{stroke:#c4541c}
.sleuth-graph .head{fill:#777;stroke:none}
.sleuth-graph .skiphead{fill:#c4541c;stroke:none}
.sleuth-graph rect{stroke:#999;stroke-width:1}
.sleuth-graph .frame{fill:#8881;stroke:#bbb}
.sleuth-graph .left{text-anchor:start;paint-order:stroke;stroke:#f4f4f4;stroke-width:4px;stroke-linejoin:round}
""" + "".join(f".sleuth-graph .{family}{{fill:{light}}}\n" for family, (light, _) in {**FILLS, "other": OTHER}.items())
DARK = (
    "@media (prefers-color-scheme:dark){.sleuth-graph text{fill:#eee}.sleuth-graph .small{fill:#bbb}"
    ".sleuth-graph rect{stroke:#777}"
    ".sleuth-graph .wire{stroke:#aaa}.sleuth-graph .head{fill:#aaa}.sleuth-graph .skip{stroke:#f0955f}"
    ".sleuth-graph .skiphead{fill:#f0955f}.sleuth-graph .frame{fill:#8882;stroke:#666}"
    ".sleuth-graph .left{stroke:#222}"
    + "".join(f".sleuth-graph .{family}{{fill:{dark}}}" for family, (_, dark) in {**FILLS, "other": OTHER}.items())
    + "}"
)
MARGIN = 8.0


def svg(box: Box, label: str) -> str:
    width, height = box.width + 2 * MARGIN, box.height + 2 * MARGIN
    body = "".join(_drawn(box, MARGIN, MARGIN, framed=False))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sleuth-graph" role="img" aria-label="{escape(label)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" style="max-width:100%;height:auto">'
        f"<style>{STYLE}{DARK}</style>{body}</svg>"
    )


def _drawn(box: Box, x: float, y: float, framed: bool = True) -> Iterator[str]:
    if framed:
        yield from _rectangle(box, x, y)
    for inner in box.boxes:
        yield from _drawn(inner, x + inner.x, y + inner.y)
    for wire in box.wires:
        yield from _wire(wire, x, y)
    if framed and box.boxes:
        yield from _text(box, x + 10, y, "left")


def _family(box: Box) -> str:
    return box.unit.family if box.unit.family in FILLS else "other"


def _rectangle(box: Box, x: float, y: float) -> Iterator[str]:
    name = "frame" if box.boxes else _family(box)
    radius = 14 if box.unit.family in ("operation", "input") else 5
    yield f"<g><title>{escape(_tip(box))}</title>"
    size = f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"'
    if box.unit.times > 1:
        yield f'<rect class="{name}" x="{x + 4:.1f}" y="{y - 4:.1f}" {size}/>'
    yield f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" {size}/>'
    if not box.boxes:
        yield from _text(box, x + box.width / 2, y, "")
    yield "</g>"


def _text(box: Box, x: float, y: float, anchor: str) -> Iterator[str]:
    for place, line in enumerate(box.lines):
        name = f"{'small' if place else 'title'} {anchor}".strip()
        yield f'<text class="{name}" x="{x:.1f}" y="{y + 17 + 14 * place:.1f}">{escape(line)}</text>'


def _tip(box: Box) -> str:
    unit = box.unit
    amount = f", {unit.parameters:,} parameters" if unit.parameters else ""
    return f"{unit.path or unit.title}: {unit.kind}{amount}, puts out {unit.shape}"


def _wire(wire: Wire, x: float, y: float) -> Iterator[str]:
    points = [(px + x, py + y) for px, py in wire.points]
    tip = points[-1]
    if wire.arrow:
        points[-1] = (tip[0], tip[1] - 6)
    way = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        straight = abs(x0 - x1) < 0.5
        way += f"L{x1:.1f},{y1:.1f}" if straight else f"C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    skip = " skip" if wire.skips else ""
    yield f'<path class="wire{skip}" d="{way}"/>'
    if wire.arrow:
        head = "skiphead" if wire.skips else "head"
        yield f'<path class="{head}" d="M{tip[0]:.1f},{tip[1]:.1f}l-4,-7h8z"/>'


def figure(box: Box) -> Any:
    """The same boxes and lines on paper: 100 pixels an inch."""
    drawn = new_figure(max(box.width / 100, 2), max(box.height / 100, 2))
    axes = drawn.add_subplot()
    axes.set_xlim(-MARGIN, box.width + MARGIN)
    axes.set_ylim(box.height + MARGIN, -MARGIN)
    axes.axis("off")
    _on_paper(axes, box, 0.0, 0.0, framed=False)
    return drawn


def _on_paper(axes: Any, box: Box, x: float, y: float, framed: bool = True) -> None:
    from matplotlib.patches import FancyBboxPatch

    if framed:
        fill = "#8888881a" if box.boxes else FILLS.get(box.unit.family, OTHER)[0]
        shape = f"round,pad=0,rounding_size={12 if box.unit.family in ('operation', 'input') else 5}"
        axes.add_patch(FancyBboxPatch((x, y), box.width, box.height, shape, facecolor=fill, edgecolor="#999999", linewidth=0.7))
        at, side = (x + 10, "left") if box.boxes else (x + box.width / 2, "center")
        for place, line in enumerate(box.lines):
            weight, size = ("bold", 7) if place == 0 else ("normal", 6)
            axes.text(at, y + 13 + 14 * place, line, ha=side, va="center", fontsize=size, weight=weight)
    for inner in box.boxes:
        _on_paper(axes, inner, x + inner.x, y + inner.y)
    for wire in box.wires:
        _wire_on_paper(axes, wire, x, y)


def _wire_on_paper(axes: Any, wire: Wire, x: float, y: float) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    points = [(px + x, py + y) for px, py in wire.points]
    corners, codes = [points[0]], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        corners += [(x0, middle), (x1, middle), (x1, y1)]
        codes += [Path.CURVE4] * 3
    color = "#c4541c" if wire.skips else "#777777"
    style = "-|>" if wire.arrow else "-"
    axes.add_patch(FancyArrowPatch(path=Path(corners, codes), arrowstyle=style, mutation_scale=6, color=color, linewidth=0.8))
