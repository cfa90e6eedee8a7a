"""A comparison as text."""

from collections.abc import Iterator

from sleuth.comparing.result import DIFFERS, FAILED, SAME, Comparison, Pair, Row
from sleuth.core.words import counted

MARKS = {SAME: "✓", DIFFERS: "✗", FAILED: "✗"}
STAGES = {
    "layer": "layers",
    "output": "output",
    "loss": "loss",
    "gradient": "gradients",
    "step": "one step of the optimiser",
}
# Around the first difference; the JSON has all rows.
AROUND = 2


def told(comparison: Comparison) -> str:
    lines = list(_table(comparison))
    for pair in comparison.pairs:
        lines += ["", *_pair(pair)]
    return "\n".join(lines)


def _table(comparison: Comparison) -> Iterator[str]:
    rows = [("", "backend", "status", "output", "loss")]
    for backend in comparison.backends:
        shape = "–" if backend.shape is None else str(backend.shape)
        if backend.finite is False:
            shape += " not finite"
        loss = "–" if backend.loss is None else f"{backend.loss:.6g}"
        name = f"{backend.name} ({backend.framework} {backend.version})".replace(" )", ")")
        rows.append((MARKS.get(backend.status, "–"), name, backend.error or backend.status, shape, loss))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _pair(pair: Pair) -> Iterator[str]:
    if pair.error is not None:
        yield f"{pair.first} and {pair.other}: cannot be compared: {pair.error}"
        return
    yield f"{pair.first} and {pair.other}: {_headline(pair)}"
    yield f"  {pair.carried} of {counted(pair.parameters, 'parameter')} carried over; {pair.precision}"
    for stage, title in STAGES.items():
        rows = [row for row in pair.rows if row.stage == stage]
        if rows:
            worst = max(rows, key=lambda row: row.difference)
            apart = sum(row.differs for row in rows)
            verdict = f"{apart} of {len(rows)} differ" if apart else f"the same ({len(rows)})"
            yield f"  {title}: {verdict}, at most {worst.difference:.1e}"
    if pair.parted is not None:
        yield from _around(pair, pair.parted)
    for reason in pair.reasons:
        yield f"  Why: {reason.text} (difference {reason.before:.1e} → {reason.after:.1e})"
    if pair.tried:
        yield f"  Tried, and not the reason: {', '.join(pair.tried)}"
    for problem in pair.not_carried:
        yield f"  not carried: {problem}"
    for note in pair.notes:
        yield f"  {note}"


def _headline(pair: Pair) -> str:
    row = pair.parted
    if row is None:
        return "the same, as far as precision goes" if pair.status == SAME else f"{pair.status}: see below"
    where = {"layer": f"in {row.first}", "gradient": f"in the gradient of {row.first}", "step": f"in the step of {row.first}"}
    place = where.get(row.stage, f"in the {row.stage}")
    return f"they part {place}, by {row.difference:.1e} where rounding explains {row.explained:.1e}"


def _around(pair: Pair, parted: Row) -> Iterator[str]:
    rows = [row for row in pair.rows if row.stage == parted.stage]
    at = rows.index(parted)
    shown = rows[max(0, at - AROUND) : at + AROUND + 1]
    widths = [max(len(text) for text in column) for column in zip(*((r.first, r.other, r.kind) for r in shown), strict=True)]
    for row in shown:
        cells = (text.ljust(width) for text, width in zip((row.first, row.other, row.kind), widths, strict=True))
        mark = "✗" if row.differs else "✓"
        yield f"    {mark} {'  '.join(cells)}  {row.difference:.1e}  (rounding {row.explained:.1e}){_remark(row)}"


def _remark(row: Row) -> str:
    return f", {row.remark}" if row.remark else ""
