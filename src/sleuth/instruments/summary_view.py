"""How a summary looks: a table in the terminal and in a notebook, bars on paper."""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sleuth.instruments.result import new_figure

if TYPE_CHECKING:
    from sleuth.core.contract.inspection import Door
    from sleuth.instruments.summary import Row, Summary

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NUMBERS = ("parameters", "FLOPs", "time")
# More bars than this cannot be told apart.
MOST_BARS = 20


def table(summary: "Summary") -> str:
    head, rows = cells(summary)
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    pads = [str.rjust if title in NUMBERS else str.ljust for title in head]
    lines = ["  ".join(pad(t, w) for pad, t, w in zip(pads, line, widths, strict=True)).rstrip() for line in (head, *rows)]
    return "\n".join((lines[0], "─" * max(map(len, lines)), *lines[1:], "", *closing(summary)))


def closing(summary: "Summary") -> list[str]:
    frozen = f", {summary.frozen:,} frozen" if summary.frozen else ""
    lines = [f"{summary.parameters:,} parameters: {summary.trainable:,} trainable{frozen}"]
    if summary.flops is not None:
        lines.append(f"{scaled(summary.flops)}FLOPs a forward pass")
    if summary.seconds is not None:
        lines.append(f"{summary.seconds * 1e3:.3g} ms a forward pass")
    if summary.failure is not None:
        where = f" in {summary.failure.layer}" if summary.failure.layer else ""
        lines.append(f"the forward pass fails{where}: {summary.failure.message.strip().splitlines()[0]}")
        lines.append("sleuth.trace(model, inputs) says what to do")
    return lines + list(summary.notes)


def cells(summary: "Summary") -> tuple[list[str], list[list[str]]]:
    """Columns that are empty in every row are left out."""
    head = ["layer", "kind", "input", "output", "kernel", "parameters", "FLOPs", "time", ""]
    rows = [_line(summary, row) for row in summary.shown]
    kept = [i for i in range(len(head)) if i < 2 or any(row[i] for row in rows)]
    return [head[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _line(summary: "Summary", row: "Row") -> list[str]:
    share = summary.share_of_time(row)
    return [
        "  " * row.depth + (row.path.rpartition(".")[2] or summary.name),
        row.kind,
        doors(row.inputs),
        doors(row.outputs),
        "×".join(map(str, row.kernel)) if row.kernel else "",
        f"{row.parameters:,}" if row.parameters else "",
        scaled(row.flops).strip() if row.flops else "",
        "" if share is None else f"{share:.0%}",
        row.note,
    ]


def doors(found: "Sequence[Door]") -> str:
    if not found:
        return ""
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return (str(found[0].shape) if found[0].shape is not None else found[0].what) + more


def scaled(number: float) -> str:
    unit, letter = next(((u, s) for u, s in UNITS if number >= u), (1.0, ""))
    return f"{number / unit:.3g} {letter}"


def html(summary: "Summary") -> str:
    head, rows = cells(summary)
    titles = "".join(f"<th style='text-align:left'>{escape(t)}</th>" for t in head)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left;white-space:pre'>{escape(t)}</td>" for t in r) + "</tr>" for r in rows
    )
    last = "<br>".join(escape(line) for line in closing(summary))
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table><p>{last}</p>"


def draw(summary: "Summary") -> Any:
    """The parts that own something, the largest first: parameters, and where known FLOPs and time."""
    paths = [r.path for r in summary.rows]
    ends = [r for r in summary.rows if not r.path or not any(p.startswith(f"{r.path}.") for p in paths)]
    ends = [r for r in ends if r.path] or list(summary.rows)
    sides = [("parameters", lambda r: r.parameters)]
    if summary.flops:
        sides.append(("FLOPs", lambda r: r.flops or 0))
    if summary.seconds:
        sides.append(("ms", lambda r: (r.seconds or 0) * 1e3))
    kept = sorted(ends, key=lambda r: -max(f(r) / (max(map(f, ends)) or 1) for _, f in sides))[:MOST_BARS]
    kept = [r for r in ends if r in kept]
    figure = new_figure(4 * len(sides) + 2, 0.3 * len(kept) + 1)
    for place, (title, value) in enumerate(sides):
        axes = figure.add_subplot(1, len(sides), place + 1)
        axes.barh(range(len(kept)), [value(r) for r in kept], color="#4477aa")
        axes.set_yticks(range(len(kept)), [r.path for r in kept] if place == 0 else [""] * len(kept))
        axes.invert_yaxis()
        axes.set_xlabel(title)
    return figure
