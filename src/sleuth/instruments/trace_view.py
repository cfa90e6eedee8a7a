"""How a trace looks."""

from typing import TYPE_CHECKING, Any

from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.core.contract.inspection import Door
    from sleuth.core.observation import Failure
    from sleuth.instruments.trace import Stop, Trace


def text(trace: "Trace") -> str:
    rows = [
        ("  " * s.depth + (s.path or trace.name), s.kind, doors(s.inputs), doors(s.outputs) or ("✗" if s.failed else "–"))
        for s in trace.stops
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c:{widths[2]}}  →  {d}" for a, b, c, d in rows]
    if trace.failure is not None:
        lines += ["", *told(trace.failure)]
    if trace.unresolved:
        lines += ["", *(f"? {line}" for line in trace.unresolved)]
    if trace.failure is None and not trace.unresolved:
        lines += ["", "every layer has its shapes"]
    return "\n".join(lines)


def told(failure: "Failure") -> list[str]:
    first = failure.message.strip().splitlines()[0] if failure.message.strip() else ""
    lines = [f"✗ fails in {failure.layer or 'the model'}: {failure.error}: {first}"]
    if failure.expected:
        lines.append(f"  takes:  {failure.expected}")
    if failure.got:
        lines.append(f"  gets:   {failure.got}")
    if failure.location is not None:
        lines.append(f"  at:     {failure.location.short_file}:{failure.location.line}   {failure.location.text}".rstrip())
    if failure.advice:
        lines.append(f"  do:     {failure.advice}")
    return lines


def doors(found: "tuple[Door, ...]") -> str:
    named = len(found) > 1
    return ", ".join(_door(door, named) for door in found)


def _door(door: "Door", named: bool) -> str:
    if door.shape is None:
        return door.what
    name = f"{door.name}: " if named and not door.name.replace(".", "").isdigit() else ""
    return f"{name}{door.shape} {door.dtype}"


def draw(trace: "Trace") -> Any:
    """How many values each call puts out, down the way; where it fails is marked."""
    ends = [s for i, s in enumerate(trace.stops) if i + 1 == len(trace.stops) or trace.stops[i + 1].depth <= s.depth]
    figure = new_figure(7, 0.28 * len(ends) + 1)
    axes = figure.add_subplot()
    sizes = [_size(s) for s in ends]
    axes.barh(range(len(ends)), sizes, color=["#cc3311" if s.failed else "#4477aa" for s in ends])
    labels = [f"{s.path or trace.name}  {doors(s.outputs) if not s.failed else 'fails'}" for s in ends]
    axes.set_yticks(range(len(ends)), labels, fontsize=8)
    axes.invert_yaxis()
    if max(sizes, default=0) > 0:
        axes.set_xscale("symlog")
    axes.set_xlabel("values a call puts out")
    return figure


def _size(stop: "Stop") -> int:
    total = 0
    for door in stop.outputs:
        size = 1
        for side in door.shape or (0,):
            size *= side
        total += size
    return total
