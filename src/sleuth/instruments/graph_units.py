"""A forward pass as a tree of boxes: calls of parts hold calls and operations, and what repeats is one box."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sleuth.core.contract.inspection import Part, Route

# Only moves values, or does nothing while evaluating: not drawn, what feeds it feeds what it feeds.
PASSED_OVER = ("reshape", "dropout")
# An unrolled loop repeats a few operations, hardly more.
LONGEST_PERIOD = 8
LEAST_TIMES = 3


@dataclass
class Unit:
    """A box: one operation, or the call of a part with the boxes inside. `nodes` are the operations of the route in it."""

    title: str
    kind: str
    family: str
    path: str
    shape: tuple[int, ...]
    nodes: list[int]
    inside: list["Unit"] = field(default_factory=list)
    times: int = 1
    chained: bool = True  # of a repeat: one after another; else side by side
    last: str = ""  # of a repeat: the path of the last one
    parameters: int = 0
    open: bool = False
    like: str = ""  # the path of a box of the same kind that is drawn open
    signature: tuple[object, ...] = ()

    @property
    def first_nodes(self) -> set[int]:
        """Of a repeat: those of the first one, which is the one that is drawn inside."""
        return {n for unit in self.inside for n in unit.nodes} if self.inside else set(self.nodes)


@dataclass(frozen=True)
class Wiring:
    """Which operation feeds which, with those that are not drawn left out."""

    sources: dict[int, tuple[int, ...]]
    users: dict[int, tuple[int, ...]]
    outputs: frozenset[int]


def units_of(route: Route, parts: Sequence[Part], name: str) -> tuple[list[Unit], Unit, Wiring]:
    """What is outside of the model (its inputs and its output), the model, and how the operations are wired."""
    wiring = _wire(route)
    kinds = {part.path: part for part in parts}
    inputs = [
        Unit(node.name, "input", "input", "", node.shape, [i], signature=(i,))
        for i, node in enumerate(route.nodes)
        if i in wiring.sources and node.visit < 0
    ]
    drawn = [i for i in wiring.sources if route.nodes[i].visit >= 0]
    root = _call(0, drawn, 0, route, kinds, wiring) if drawn else Unit(name, name, "container", "", (), [])
    root.title, root.open = name, True
    end = len(route.nodes)
    output = Unit("output", "output", "input", "", root.shape, [end])
    if wiring.outputs:
        output.shape = route.nodes[max(wiring.outputs)].shape
    return [*inputs, output], root, _ended(wiring, end)


def _ended(wiring: Wiring, end: int) -> Wiring:
    """The output of the model is one more operation, which takes what the model returns."""
    users = {i: (*after, end) if i in wiring.outputs else after for i, after in wiring.users.items()}
    return Wiring({**wiring.sources, end: tuple(sorted(wiring.outputs))}, {**users, end: ()}, frozenset())


def _wire(route: Route) -> Wiring:
    callers = {visit.parent for visit in route.passage.visits}
    resolved: dict[int, tuple[int, ...]] = {}
    kept: dict[int, tuple[int, ...]] = {}
    for i, node in enumerate(route.nodes):
        found = tuple(dict.fromkeys(s for source in node.sources for s in resolved[source]))
        # A part that was written down as a layer is drawn whatever it does, such as Flatten.
        is_layer = node.visit > 0 and node.visit not in callers
        passed = node.visit >= 0 and (node.family == "dropout" or (node.family in PASSED_OVER and not is_layer)) and bool(found)
        resolved[i] = found if passed else (i,)
        if not passed:
            kept[i] = found
    users: dict[int, list[int]] = defaultdict(list)
    for i, sources in kept.items():
        for source in sources:
            users[source].append(i)
    outputs = frozenset(s for o in route.outputs for s in resolved[o])
    return Wiring(kept, {i: tuple(users[i]) for i in kept}, outputs)


def _chain(visit: int, route: Route) -> list[int]:
    chain: list[int] = []
    at: int | None = visit
    while at is not None:
        chain.append(at)
        at = route.passage.visits[at].parent
    return chain[::-1]


def _call(visit: int, nodes: list[int], depth: int, route: Route, parts: dict[str, Part], wiring: Wiring) -> Unit:
    """The box of a call; `depth` is its place in the chain of calls."""
    path = route.passage.visits[visit].path
    part = parts[path]
    groups: list[tuple[int | None, list[int]]] = []
    for node in nodes:
        chain = _chain(route.nodes[node].visit, route)
        child = chain[depth + 1] if len(chain) > depth + 1 else None
        if child is not None and groups and groups[-1][0] == child:
            groups[-1][1].append(node)
        else:
            groups.append((child, [node]))
    unit = Unit(path.rpartition(".")[2] or path, _kind(part), part.family, path, route.nodes[nodes[-1]].shape, nodes)
    unit.parameters = sum(p.count for p in parts.values() if not path or p.path == path or p.path.startswith(f"{path}."))
    if any(child is not None for child, _ in groups) or not path:
        inside = [
            _operation(own[0], route) if child is None else _call(child, own, depth + 1, route, parts, wiring)
            for child, own in groups
        ]
        unit.inside = _collapsed(inside, wiring)
    settings = tuple((k, str(v)) for k, v in part.settings.items())
    unit.signature = (part.kind, settings, unit.shape, tuple(u.signature for u in unit.inside))
    only = unit.inside[0] if path and len(unit.inside) == 1 else None
    return only if only is not None and only.family != "operation" else unit


def _kind(part: Part) -> str:
    """Conv2d 3×3 /2"""
    kernel, stride = part.settings.get("kernel"), part.settings.get("stride", 1)
    if kernel is None:
        return part.kind
    sides = kernel if isinstance(kernel, tuple) else (kernel, kernel) if part.kind.endswith("2d") else (kernel,)
    step = stride[0] if isinstance(stride, tuple) else stride
    return f"{part.kind} {'×'.join(map(str, sides))}" + (f" /{step}" if step != 1 else "")


def _operation(node: int, route: Route) -> Unit:
    of = route.nodes[node]
    return Unit(of.name, of.name, "operation", "", of.shape, [node], signature=(of.name, of.shape))


def _collapsed(units: list[Unit], wiring: Wiring) -> list[Unit]:
    found: list[Unit] = []
    at = 0
    while at < len(units):
        period, times = _longest(units, at, wiring)
        if times > 1:
            found.append(_repeat(units[at : at + period * times], period, times, wiring))
        else:
            found.append(units[at])
        at += period * times
    return found


def _longest(units: list[Unit], at: int, wiring: Wiring) -> tuple[int, int]:
    """(period, times) of the repeat that begins here and holds most boxes."""
    best = (1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        first = [u.signature for u in units[at : at + period]]
        times = 1
        while [u.signature for u in units[at + period * times : at + period * (times + 1)]] == first:
            times += 1
        blocks = period == 1 and bool(units[at].inside)
        if times < (2 if blocks else LEAST_TIMES) or period * times <= best[0] * best[1]:
            continue
        if _kind_of_repeat(units[at : at + period * times], period, wiring) is not None:
            best = (period, times)
    return best


def _kind_of_repeat(units: list[Unit], period: int, wiring: Wiring) -> bool | None:
    """Chained, side by side (False), or neither: then they cannot stand as one box."""
    groups = [{n for u in units[i : i + period] for n in u.nodes} for i in range(0, len(units), period)]
    feeds = [[_feeds(one, other, wiring) for one in groups] for other in groups]
    size = range(len(groups))
    if not any(feeds[i][j] for i in size for j in size if i != j):
        return False
    chained = all(feeds[i][i - 1] for i in size[1:]) and not any(feeds[i][j] for i in size for j in size if j < i - 1)
    return True if chained else None


def _feeds(one: set[int], other: set[int], wiring: Wiring) -> bool:
    return any(s in one for n in other for s in wiring.sources[n])


def _repeat(units: list[Unit], period: int, times: int, wiring: Wiring) -> Unit:
    chained = bool(_kind_of_repeat(units, period, wiring))
    nodes = [n for u in units for n in u.nodes]
    first, last = units[0], units[-1]
    single = period == 1
    names = ", ".join(u.title for u in units[:period])
    return Unit(
        title=f"{times} × {first.kind if single and first.inside else first.title if single else names}",
        kind=first.kind if single else "",
        family=first.family if single else "container",
        path=first.path,
        shape=last.shape,
        nodes=nodes,
        inside=first.inside if single else units[:period],
        times=times,
        chained=chained,
        last=last.path,
        parameters=sum(u.parameters for u in units),
        signature=("repeat", times, first.signature),
    )


def opened(root: Unit, most: int, depth: int | None) -> None:
    """Opens boxes level by level as long as no more than `most` are seen; boxes of one kind are treated alike, and where all
    of them are too many, the first stands for the others."""
    seen, level, here = len(root.inside), [u for u in root.inside if u.inside], 1
    while level and (depth is None or here < depth):
        opening: list[Unit] = []
        for alike in _by_kind(level):
            wanted = alike if seen + sum(len(u.inside) - 1 for u in alike) <= most or depth is not None else alike[:1]
            if depth is None and seen + sum(len(u.inside) - 1 for u in wanted) > most:
                continue
            for unit in alike:
                unit.open = any(unit is w for w in wanted)
                unit.like = "" if unit.open else wanted[0].path
            seen += sum(len(u.inside) - 1 for u in wanted)
            opening += wanted
        level = [inner for unit in opening for inner in unit.inside if inner.inside]
        here += 1


def _by_kind(units: Iterable[Unit]) -> list[list[Unit]]:
    groups: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        groups[unit.kind].append(unit)
    return list(groups.values())
