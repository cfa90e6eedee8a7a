"""A picture of a model: its parts and operations as boxes, what feeds what as lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.core.contract.adapter import Routes
from sleuth.core.errors import UnusableInput
from sleuth.core.observation import Drawing
from sleuth.instruments.given import Given
from sleuth.instruments.graph_layout import Box, lay_out
from sleuth.instruments.graph_units import Unit, Wiring, opened, units_of
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

# So many boxes fit on a page that a person reads.
MOST = 40


@dataclass(frozen=True)
class Vertex:
    """A box that is seen: an operation, a closed part, or a repeat of parts."""

    key: int
    title: str
    kind: str
    path: str
    shape: tuple[int, ...]
    parameters: int
    times: int
    within: tuple[str, ...]  # the open boxes around it, the outermost first


@dataclass(frozen=True, eq=False)
class Graph(Result):
    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[tuple[int, int], ...]  # from key to key
    operations: int  # in the forward pass, drawn or not
    box: Box = field(repr=False)

    @property
    def svg(self) -> str:
        from sleuth.instruments.graph_view import svg

        return svg(self.box, f"graph of {self.name}")

    def save(self, path: str | Path) -> None:
        """As SVG, or as whatever matplotlib makes of the ending (.png, .pdf)."""
        if Path(path).suffix == ".svg":
            Path(path).write_text(self.svg, encoding="utf-8")
        else:
            self.plot().savefig(path)

    def to_dict(self) -> dict[str, Any]:
        return plain({k: getattr(self, k) for k in ("name", "vertices", "edges", "operations")})

    def plot(self) -> Any:
        from sleuth.instruments.graph_view import figure

        return figure(self.box)

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.operations} operations, {len(self.vertices)} boxes"]
        for v in self.vertices:
            sources = [self.vertices[a].title for a, b in self.edges if b == v.key]
            lines.append(
                f"{'  ' * len(v.within)}{v.title} ({v.kind}) {v.shape}" + (f"  ← {', '.join(sources)}" if sources else "")
            )
        return "\n".join(lines)


def drawing_of(model: Any, inputs: Any) -> Drawing | None:
    """For a report; None where that cannot be had, whatever the reason."""
    try:
        return Drawing(graph(model, inputs, progress=False).svg)
    except Exception:  # a report without a picture is better than none
        return None


def graph(
    model: Any,
    inputs: Any,
    *,
    dtype: str | None = None,
    most: int = MOST,
    depth: int | None = None,
    progress: bool | None = None,
) -> Graph:
    """Which operation feeds which in one forward pass, with parts as boxes; `result.svg`, `result.save("model.svg")`.

    Parts are opened level by level while no more than `most` boxes are seen, or down to `depth`; what repeats is one box.
    Reshaping and dropout are not drawn. `inputs` as for `sleuth.summary`. The pass runs on a copy, in eval mode.
    """
    from sleuth.views import progress as progress_view

    given = Given(model, inputs, dtype)
    if not isinstance(adapter := given.adapter, Routes):
        raise given.lacks(Routes)
    with progress_view.shown(progress) as tell:
        tell("Following the operations of one forward pass")
        route = adapter.route(given.model, given.required())
    outside, root, wiring = units_of(route, given.inspects.parts(given.model), given.name)
    if not root.nodes:
        raise UnusableInput(f"{given.name} does nothing to its inputs that could be drawn.")
    opened(root, most, depth)
    seen = list(_seen([*outside[:-1], root, outside[-1]], ()))
    vertices = tuple(
        Vertex(key, u.title, u.kind, u.path, u.shape, u.parameters, u.times, within) for key, (u, within) in enumerate(seen)
    )
    edges = tuple(_edges([u for u, _ in seen], wiring))
    return Graph(given.name, vertices, edges, len(route.nodes), lay_out(outside, root, wiring))


def _seen(units: list[Unit], within: tuple[str, ...]) -> Iterator[tuple[Unit, tuple[str, ...]]]:
    for unit in units:
        if unit.open:
            yield from _seen(unit.inside, (*within, unit.title))
        else:
            yield unit, within


def _edges(units: list[Unit], wiring: Wiring) -> Iterator[tuple[int, int]]:
    """Between boxes that are seen; the later ones of an open repeat are not."""
    home = {n: key for key, unit in enumerate(units) for n in unit.nodes}
    pairs = ((home[s], home[n]) for n in wiring.sources if n in home for s in wiring.sources[n] if s in home)
    yield from dict.fromkeys((a, b) for a, b in pairs if a != b)
