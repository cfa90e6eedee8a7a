"""Boxes in layers from top to bottom: which stands beside which, and where (after Sugiyama, Tagawa and Toda 1981)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Bend = tuple[int, int, int]  # an edge, and a layer that it passes
Vertex = int | Bend
Beside = Mapping[Vertex, list[Vertex]]
SWEEPS = 8
# A box keeps its place; a line that passes by gives way.
BOX_WEIGHT, LINE_WEIGHT = 1000.0, 1.0


@dataclass(frozen=True)
class Size:
    width: float
    height: float


@dataclass
class Layered:
    """Centres of the boxes, and for each edge the points where it passes a layer of boxes."""

    width: float
    height: float
    centres: dict[int, tuple[float, float]]
    bends: dict[tuple[int, int], list[tuple[float, float]]] = field(default_factory=dict)


def layered(
    sizes: Mapping[int, Size], edges: Sequence[tuple[int, int]], top: Sequence[int], bottom: Sequence[int], gap: Size, line: float
) -> Layered:
    """`edges` lead from lower to higher keys' order of `sizes`; `top` stand in the first layer, `bottom` in the last. `line`: the
    room that a passing edge takes."""
    rank = _ranks(list(sizes), edges, top, bottom)
    lines, links = _with_bends(rank, edges)
    layers: list[list[Vertex]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    for key in sizes:
        layers[rank[key]].append(key)
    for bend in lines:
        layers[bend[2]].append(bend)
    above: dict[Vertex, list[Vertex]] = defaultdict(list)
    below: dict[Vertex, list[Vertex]] = defaultdict(list)
    for one, other in links:
        above[other].append(one)
        below[one].append(other)
    _order(layers, above, below, top)
    widths = {v: sizes[v].width if isinstance(v, int) else line for layer in layers for v in layer}
    xs = _places(layers, above, below, widths, gap.width)
    heights = [max((sizes[v].height for v in layer if isinstance(v, int)), default=0.0) for layer in layers]
    tops = [sum(heights[:i]) + gap.height * i for i in range(len(layers))]
    centres = {v: (xs[v], tops[i] + heights[i] / 2) for i, layer in enumerate(layers) for v in layer if isinstance(v, int)}
    bends: dict[tuple[int, int], list[tuple[float, float]]] = {edge: [] for edge in edges}
    for one, other, at in sorted(lines, key=lambda b: b[2]):
        bends[one, other] += [(xs[one, other, at], tops[at]), (xs[one, other, at], tops[at] + heights[at])]
    right = max((xs[v] + widths[v] / 2 for v in widths), default=0.0)
    return Layered(right, sum(heights) + gap.height * (len(layers) - 1), centres, bends)


def _ranks(keys: list[int], edges: Sequence[tuple[int, int]], top: Sequence[int], bottom: Sequence[int]) -> dict[int, int]:
    """The longest way from the top; what nothing feeds stands just above what it feeds."""
    rank = dict.fromkeys(keys, 0)
    for key in keys:
        rank[key] = max((rank[a] + 1 for a, b in edges if b == key), default=1 if top and key not in top else 0)
    fed = {b for _, b in edges}
    for key in keys:
        users = [rank[b] for a, b in edges if a == key]
        if key not in fed and key not in top and users:
            rank[key] = max(min(users) - 1, 0)
    last = max(rank.values(), default=0)
    if bottom:
        last = max([rank[k] for k in keys if k not in bottom], default=-1) + 1
    rank.update(dict.fromkeys(bottom, last))
    return rank


def _with_bends(rank: Mapping[int, int], edges: Sequence[tuple[int, int]]) -> tuple[list[Bend], list[tuple[Vertex, Vertex]]]:
    lines: list[Bend] = []
    links: list[tuple[Vertex, Vertex]] = []
    for one, other in edges:
        way: list[Vertex] = [one]
        for at in range(rank[one] + 1, rank[other]):
            lines.append((one, other, at))
            way.append((one, other, at))
        links += list(zip(way, [*way[1:], other], strict=True))
    return lines, links


def _order(layers: list[list[Vertex]], above: Beside, below: Beside, top: Sequence[int]) -> None:
    """By the mean place of the neighbours, down and up in turn; the order with the fewest crossings stays."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for at in range(1, len(layers)) if down else range(len(layers) - 2, -1, -1):
            fixed = layers[at - 1 if down else at + 1]
            place = {v: i for i, v in enumerate(fixed)}
            beside = above if down else below
            own = {v: i for i, v in enumerate(layers[at])}
            means = {v: _mean([place[n] for n in beside[v] if n in place], own[v]) for v in layers[at]}
            layers[at].sort(key=lambda v: means[v])
        count = _crossings(layers, below)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    layers[:] = best
    if top and layers:
        layers[0].sort(key=lambda v: top.index(v) if v in top else len(top))


def _mean(values: list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(layers: list[list[Vertex]], below: Beside) -> int:
    total = 0
    for one, other in pairwise(layers):
        place = {v: i for i, v in enumerate(other)}
        ends = [sorted(place[n] for n in below[v] if n in place) for v in one]
        flat = [e for some in ends for e in some]
        total += sum(flat[i] > flat[j] for i in range(len(flat)) for j in range(i + 1, len(flat)))
    return total


def _places(
    layers: list[list[Vertex]], above: Beside, below: Beside, widths: Mapping[Vertex, float], gap: float
) -> dict[Vertex, float]:
    """Each vertex as close to its neighbours as its layer allows, over and over."""
    xs: dict[Vertex, float] = {}
    for layer in layers:
        at = 0.0
        for v in layer:
            xs[v] = at + widths[v] / 2
            at += widths[v] + gap
    for sweep in range(2 * SWEEPS):
        order = layers if sweep % 2 == 0 else layers[::-1]
        for layer in order:
            near = {v: (above[v] if sweep % 2 == 0 else below[v]) or above[v] + below[v] for v in layer}
            wanted = [_centre(near[v], xs, xs[v]) for v in layer]
            weights = [BOX_WEIGHT if isinstance(v, int) else LINE_WEIGHT for v in layer]
            apart = [(widths[a] + widths[b]) / 2 + gap for a, b in pairwise(layer)]
            xs.update(zip(layer, _spread(wanted, weights, apart), strict=True))
    left = min((xs[v] - widths[v] / 2 for v in xs), default=0.0)
    return {v: x - left for v, x in xs.items()}


def _centre(neighbours: list[Vertex], xs: Mapping[Vertex, float], otherwise: float) -> float:
    """Below or above the boxes; lines count only where there is no box, or the boxes would not stand in a row."""
    places = [xs[n] for n in neighbours if isinstance(n, int)] or [xs[n] for n in neighbours]
    return sum(places) / len(places) if places else otherwise


def _spread(wanted: list[float], weights: list[float], apart: list[float]) -> list[float]:
    """The places nearest to the wanted ones that keep the order and the distances: pooling of adjacent violators."""
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    pools: list[list[float]] = []  # [sum of weighted places, weight, members]
    for place, weight, offset in zip(wanted, weights, offsets, strict=False):
        pools.append([(place - offset) * weight, weight, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, heavy, members = pools.pop()
            pools[-1] = [pools[-1][0] + total, pools[-1][1] + heavy, pools[-1][2] + members]
    flat = [pool[0] / pool[1] for pool in pools for _ in range(int(pool[2]))]
    return [place + offset for place, offset in zip(flat, offsets, strict=False)]
