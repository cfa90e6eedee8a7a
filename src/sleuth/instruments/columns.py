"""Rows of cells as a terminal and a notebook show them, and the colours of all our pictures."""

from collections.abc import Sequence
from html import escape
from typing import Any

# Told apart by people who see few colours.
BLUE, ORANGE, GREEN, RED, GREY = "#3b82c4", "#e08214", "#2f9e6e", "#d9534f", "#8a8a8a"
LONGEST_NAME = 34
# More names than this do not fit below an axis.
MOST_NAMES = 40
SIZES = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], closing: Sequence[str] = ()) -> str:
    """The first column and the last, which may be empty, to the left; numbers to the right."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(_padded(t, w, i, len(head)) for i, (t, w) in enumerate(zip(r, widths, strict=True))).rstrip()
        for r in (head, *rows)
    ]
    rule = "─" * max(map(len, lines))
    return "\n".join((lines[0], rule, *lines[1:], *(["", *closing] if closing else [])))


def _padded(text: str, width: int, place: int, columns: int) -> str:
    return text.ljust(width) if place in (0, columns - 1) else text.rjust(width)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], closing: Sequence[str] = ()) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        sides = ["left" if i in (0, len(cells) - 1) else "right" for i in range(len(cells))]
        return (
            "<tr>"
            + "".join(f"<{tag} style='text-align:{s}'>{escape(c)}</{tag}>" for s, c in zip(sides, cells, strict=True))
            + "</tr>"
        )

    body = "".join(line("td", row) for row in rows)
    said = "".join(f"<p>{escape(text)}</p>" for text in closing)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>{said}"


def number(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:.3g}"


def size(count: float) -> str:
    for unit, name in SIZES:
        if abs(count) >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def short(name: str) -> str:
    """Its end says more: the beginning is mostly the same for all."""
    return name if len(name) <= LONGEST_NAME else "…" + name[1 - LONGEST_NAME :]


def name_axis(axes: Any, names: Sequence[str]) -> None:
    """Names below an axis of places 0, 1, 2, …; of many only some. A name is text: no dollar signs are read as mathematics."""
    stride = -(-len(names) // MOST_NAMES)
    shown = range(0, len(names), stride)
    axes.set_xticks(list(shown), [short(names[i]) for i in shown], rotation=90, fontsize=7, parse_math=False)
    axes.set_xlim(-0.6, len(names) - 0.4)
