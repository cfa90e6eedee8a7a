"""Where each box of a graph stands: an open box is laid out by itself and then is one box of the one around it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sleuth.instruments.graph_layers import Layered, Size, layered
from sleuth.instruments.graph_units import Unit, Wiring

LETTER = 7.2  # of the title, in pixels at 12 pixels of height
SMALL_LETTER = 5.8
PADDING = 12.0
HEADER = 22.0
GAP = Size(26.0, 22.0)
LINE = 10.0
PASSES = 3


@dataclass
class Box:
    unit: Unit
    lines: tuple[str, ...]
    width: float
    height: float
    x: float = 0.0  # of its left upper corner, in the box around it
    y: float = 0.0
    boxes: list["Box"] = field(default_factory=list)
    wires: list["Wire"] = field(default_factory=list)
    ports: dict[int, float] = field(default_factory=dict)  # by source in the box around it → x on its upper edge
    exit: float | None = None  # x on its lower edge


@dataclass(frozen=True)
class Wire:
    points: tuple[tuple[float, float], ...]
    arrow: bool = True
    skips: bool = False  # passes boxes by, as a residual connection does


@dataclass(frozen=True)
class Sources:
    """Whence a box is fed, by the key of a box beside it or of a port of the box around both."""

    of: dict[int, int]  # operation → key


Arrivals = dict[int, dict[int, float]]


def lay_out(outside: list[Unit], root: Unit, wiring: Wiring) -> Box:
    """`outside`: the inputs and, last, the output. Several times: only then it is known from which side a
    line comes to a box that is open, and to those inside of it."""
    whole = Unit("", "", "container", "", (), [], inside=[*outside[:-1], root, outside[-1]], open=True)
    arrivals: Arrivals = {}
    for _ in range(PASSES - 1):
        _open(whole, Sources({}), wiring, arrivals, frame=False)
    return _open(whole, Sources({}), wiring, arrivals, frame=False)


def _open(unit: Unit, outside: Sources, wiring: Wiring, arrivals: Arrivals, frame: bool = True) -> Box:
    """Keys: boxes inside count from 0; ports are -1, -2, …; the way out is the number of boxes."""
    inside = unit.inside
    home = {n: key for key, inner in enumerate(inside) for n in inner.nodes}
    own = unit.first_nodes
    entries = dict.fromkeys(outside.of.get(s, -1) for n in own for s in wiring.sources[n] if s not in home)
    ports = {source: -1 - place for place, source in enumerate(sorted(entries))}
    key_of = {**{s: ports[k] for s, k in outside.of.items() if k in ports}, **home}
    boxes = []
    for key, inner in enumerate(inside):
        beside = Sources({s: k for s, k in key_of.items() if k != key})
        boxes.append(_open(inner, beside, wiring, arrivals) if inner.open else _closed(inner))
    edges = list(_edges(inside, key_of, ports, wiring))
    out = len(inside)
    sizes = {**{p: Size(1.0, 0.0) for p in ports.values()}, **{k: Size(b.width, b.height) for k, b in enumerate(boxes)}}
    leaving = [key for key, inner in enumerate(inside) if frame and _leaves(inner, own, wiring)]
    if leaving:
        sizes[out] = Size(1.0, 0.0)
        edges += [(key, out) for key in leaving]
    sides = arrivals.get(id(unit), {})
    top = sorted(ports.values(), key=lambda port: sides.get(port, 0.0))
    placed = layered(sizes, edges, top, [out] if leaving else [], GAP, LINE)
    box = _assembled(unit, boxes, edges, placed, ports, out, frame)
    for inner, drawn in zip(inside, boxes, strict=True):
        if inner.open:
            arrivals[id(inner)] = _sides(inner, drawn, inside.index(inner), edges, box)
    return box


def _sides(unit: Unit, drawn: Box, key: int, edges: list[tuple[int, int]], around: Box) -> dict[int, float]:
    """By port of the box: where the line to it comes from."""
    sources = sorted(drawn.ports)
    found = {}
    for (one, other), wire in zip(edges, around.wires, strict=True):
        if other == key and one in sources:
            found[-1 - sources.index(one)] = wire.points[-2][0]
    return found


def _edges(inside: list[Unit], key_of: dict[int, int], ports: dict[int, int], wiring: Wiring) -> Iterator[tuple[int, int]]:
    seen = set()
    for key, inner in enumerate(inside):
        for node in inner.nodes:
            for source in wiring.sources[node]:
                start = key_of.get(source, ports.get(-1))
                if start is not None and start != key and (start, key) not in seen:
                    seen.add((start, key))
                    yield start, key


def _leaves(inner: Unit, own: set[int], wiring: Wiring) -> bool:
    return any(n in wiring.outputs or any(user not in own for user in wiring.users[n]) for n in inner.nodes)


def _assembled(
    unit: Unit, boxes: list[Box], edges: list[tuple[int, int]], placed: Layered, ports: dict[int, int], out: int, frame: bool
) -> Box:
    lines = caption(unit) if frame else ()
    header = HEADER + 15 * (len(lines) - 1) if frame else 0.0
    wide = max(placed.width, LETTER * max((len(line) for line in lines), default=0)) if frame else placed.width
    axis = placed.centres[out][0] if out in placed.centres else placed.width / 2
    # As much on the left as on the right: lines then go straight through boxes that are open.
    wide = max(wide, 2 * axis, 2 * (placed.width - axis))
    dx = PADDING + wide / 2 - axis
    dy = header + PADDING
    for key, box in enumerate(boxes):
        x, y = placed.centres[key]
        box.x, box.y = x - box.width / 2 + dx, y - box.height / 2 + dy
    height = placed.height + header + 2 * PADDING
    box = Box(unit, lines, wide + 2 * PADDING, height, boxes=boxes)
    box.exit = axis + dx if out in placed.centres else None
    box.ports = {source: placed.centres[port][0] + dx for source, port in ports.items()}
    for one, other in edges:
        bends = tuple((x + dx, y + dy) for x, y in placed.bends[one, other])
        start = (placed.centres[one][0] + dx, 0.0) if one < 0 else _foot(boxes[one])
        end = (placed.centres[other][0] + dx, height) if other == out else _head(boxes[other], one)
        # A port of the box passes its title on the way in.
        lead = ((start[0], header + PADDING / 2),) if one < 0 else ()
        box.wires.append(Wire((start, *lead, *bends, end), arrow=other != out, skips=bool(bends)))
    return box


def _foot(box: Box) -> tuple[float, float]:
    return box.x + (box.width / 2 if box.exit is None else box.exit), box.y + box.height


def _head(box: Box, source: int) -> tuple[float, float]:
    return box.x + box.ports.get(source, box.width / 2), box.y


def _closed(unit: Unit) -> Box:
    lines = caption(unit)
    width = max(LETTER * len(lines[0]), *(SMALL_LETTER * len(line) for line in lines), 40.0) + 2 * PADDING
    return Box(unit, lines, width, 14.0 * len(lines) + 10.0)


def caption(unit: Unit) -> tuple[str, ...]:
    """The title, then what is worth knowing in small letters."""
    if unit.family == "input":
        return (unit.title, str(unit.shape))
    if unit.family == "operation":
        return (unit.title,) if not unit.times > 1 else (unit.title, str(unit.shape))
    kind = unit.kind if unit.kind and unit.kind not in unit.title else ""
    title = f"{unit.title} · {kind}" if kind else unit.title
    amount = f" · {unit.parameters:,} parameters" if unit.parameters else ""
    if unit.open:
        span = f"{unit.path} … {unit.last}" if unit.times > 1 and unit.path else ""
        order = "" if unit.times == 1 or unit.chained else " side by side"
        return tuple(line for line in (title + order, f"{span}{amount}".removeprefix(" · ")) if line)
    like = (f"as {unit.like}",) if unit.like else ()
    return (title, f"{unit.shape}{amount}", *like)
