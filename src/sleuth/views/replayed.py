"""A step that was done again: as text for the terminal and as plain data."""

import math
from collections.abc import Iterator
from typing import Any

from sleuth.core.contract.scene import Operation, Replayed
from sleuth.core.location import Location

# Around the op where NaN was born; the ends of the step; the rest is counted.
BEFORE, AFTER, ENDS = 12, 6, 8
WORDS = {
    "same": "✓ reproduced, to the last bit",
    "close": "✓ reproduced, within rounding",
    "different": "✗ not reproduced: the values are others",
    "unknown": "– nothing was there to compare with",
}


def as_text(replayed: Replayed, every: bool = False) -> str:
    return "\n".join(_lines(replayed, every))


def as_data(replayed: Replayed) -> dict[str, Any]:
    scene = replayed.scene
    return {
        "schema": 1,
        "scene": scene.number,
        "name": scene.name,
        "step": scene.step,
        "reproduced": replayed.reproduced,
        "verdict": replayed.verdict,
        "compared": list(replayed.compared),
        "loss": _number(replayed.loss),
        "recorded_loss": _number(replayed.recorded_loss),
        "samples": scene.samples,
        "suspects": scene.facts.get("suspects", []),
        "origin": None if replayed.origin is None else _operation(replayed.origin),
        "gradients_not_finite": {name: {"nans": n, "infs": i} for name, (n, i) in replayed.gradients.items()},
        "operations": [_operation(op) for op in replayed.operations],
        "notes": list(replayed.notes),
    }


def _lines(replayed: Replayed, every: bool) -> Iterator[str]:
    scene = replayed.scene
    yield f"sleuth replay · scene {scene.number} · step {scene.step} · {scene.name or 'an assertion'}"
    yield f"  {scene.facts.get('message', '')}"
    for suspect in scene.facts.get("suspects", []):
        where = f"sample {suspect['index']:,} of the data set" if suspect["index"] is not None else "a sample"
        yield f"  {where}, position {suspect['position']} of the batch: {suspect['reason']}"
    yield ""
    yield WORDS[replayed.verdict]
    yield from (f"  {text}" for text in replayed.compared)
    if replayed.origin is not None:
        origin = replayed.origin
        yield ""
        kind = "NaN" if origin.nans else "Inf"
        yield f"{kind} is born in {'the backward of ' if origin.direction == 'backward' else ''}{origin.name}{_in(origin)}"
        yield from ([f"  {_place(origin.location)}   {origin.location.text}"] if origin.location is not None else [])
    yield ""
    yield from _table(replayed, every)
    for name, (nans, infs) in replayed.gradients.items():
        yield f"gradient of {name}: {nans} NaN, {infs} Inf"
    yield from (f"Note: {note}" for note in replayed.notes)


def _table(replayed: Replayed, every: bool) -> Iterator[str]:
    operations = replayed.operations
    shown = set(range(len(operations))) if every else _near(operations)
    rows: list[tuple[str, ...]] = [("", "operation", "layer", "shape", "values", "line")]
    rows += [_row(op) for i, op in enumerate(operations) if i in shown]
    widths = [min(max(len(row[c]) for row in rows), 34) for c in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell[:width].ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(shown) < len(operations):
        yield f"({len(shown)} of {len(operations)} operations; --all shows every one)"
    yield ""


def _near(operations: tuple[Operation, ...]) -> set[int]:
    bad = next((i for i, op in enumerate(operations) if not op.is_finite), None)
    ends = {*range(ENDS), *range(len(operations) - ENDS, len(operations))}
    around = set() if bad is None else set(range(bad - BEFORE, bad + AFTER))
    return (ends | around) & set(range(len(operations)))


def _row(op: Operation) -> tuple[str, ...]:
    values = "nothing finite" if op.low is None or op.high is None else f"{op.low:.4g} … {op.high:.4g}"
    bad = [f"{n} {word}" for n, word in ((op.nans, "NaN"), (op.infs, "Inf")) if n]
    return (
        "" if op.is_finite else "✗",
        op.name,
        op.layer,
        "×".join(map(str, op.shape)) or "1",
        ", ".join([values, *bad]),
        _place(op.location),
    )


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "operation": op.name,
        "layer": op.layer or None,
        "direction": op.direction,
        "location": None
        if op.location is None
        else {"file": op.location.short_file, "line": op.location.line, "text": op.location.text},
        "shape": list(op.shape),
        "low": op.low,
        "high": op.high,
        "nans": op.nans,
        "infs": op.infs,
    }


def _in(op: Operation) -> str:
    return f", in {op.layer}" if op.layer else ""


def _place(location: Location | None) -> str:
    return "" if location is None else f"{location.short_file}:{location.line}"


def _number(value: float | None) -> Any:
    """JSON has no NaN: it is given as text."""
    return value if value is None or math.isfinite(value) else str(value)
