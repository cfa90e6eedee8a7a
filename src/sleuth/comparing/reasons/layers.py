"""Why a layer's output differs although what went in is the same."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sleuth.comparing.carrying import Twin, read
from sleuth.comparing.distance import apart, row_of, rows_apart
from sleuth.comparing.heard import Value
from sleuth.comparing.layout import to_common
from sleuth.comparing.pairing import Joined
from sleuth.comparing.reasons.activations import FUNCTIONS, activations, applied
from sleuth.comparing.reasons.formula import Formula, Maker, Task, fitting
from sleuth.comparing.reasons.norms import batch_norms, norms, norms_with
from sleuth.comparing.reasons.weighty import convolutions, linears, pools
from sleuth.comparing.result import Reason
from sleuth.comparing.side import Side
from sleuth.core.runtime.tree import leaves

MAKERS: dict[str, Maker] = {
    "norm": norms,
    "batchnorm": batch_norms,
    "linear": linears,
    "conv": convolutions,
    "pool": pools,
    "activation": activations,
    "softmax": activations,
}
TRIED = {
    "norm": ("epsilon", "epsilon outside the root", "variance divided by n - 1", "rms norm"),
    "batchnorm": ("epsilon", "statistics of the batch instead of the running ones"),
    "linear": ("layout", "bias"),
    "conv": ("padding", "kernel turned round"),
    "pool": ("mean or maximum", "padding"),
    "activation": ("variants of the activation", "slope"),
    "softmax": ("axis",),
}
EPSILONS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-12)
# Of earlier outputs, the layer's input is hardly farther back.
BACK = 8
# The error function takes about a second for so many.
MOST_NUMBERS = 4_000_000
# A reason explains a difference when it leaves no more than this share of it.
LEFT = 0.05


def layer_reasons(joined: Joined, at: int) -> tuple[list[Reason], list[str]]:
    row, a, b = joined.layers[at]
    found = (
        list(_formulas(joined, a, b, row.difference))
        or list(_functions(joined, at))
        or list(_by_statistics(joined, a, b, row.difference))
    )
    if found:
        return found, []
    family = _family(joined, a)
    return list(_simple(row.difference, a, b)), list(TRIED.get(family, ()))


def _formulas(joined: Joined, a: Value, b: Value, before: float) -> Iterator[Reason]:
    maker = MAKERS.get(_family(joined, a))
    if maker is None or a.values is None or b.values is None:
        return
    twin = _twin(joined, a, b)
    mine = fitting(maker, list(_tasks(joined, 0, a, twin)))
    yours = fitting(maker, list(_tasks(joined, 1, b, twin)))
    if mine is None or yours is None or mine[0].text == yours[0].text:
        return
    after = _exchanged(yours[0], mine[1], b)
    if after <= LEFT * before:
        names = joined.first.name, joined.other.name
        yield Reason(mine[0].reason, f"{names[0]} computes with {mine[0].text}, {names[1]} with {yours[0].text}", before, after)


def _functions(joined: Joined, at: int) -> Iterator[Reason]:
    """What a model applies between two layers without a layer of its own shows in what the second makes of the first."""
    row, a, b = joined.layers[at]
    maker = MAKERS.get(_family(joined, a))
    before = joined.layers[at - 1][1:] if at else None
    if maker is None or before is None or any(v.values is None or v.size > MOST_NUMBERS for v in (a, b, *before)):
        return
    twin = _twin(joined, a, b)
    tasks = [replace(_task(joined, which, v, twin), x=before[which].turned) for which, v in enumerate((a, b))]
    mine, yours = (applied(maker, task) for task in tasks)
    if mine is None or yours is None or mine[0] == yours[0]:
        return
    after = yours[1].misses(replace(tasks[0], x=FUNCTIONS[yours[0]](tasks[0].x), y=b.turned))
    if after <= LEFT * row.difference:
        names = joined.first.name, joined.other.name
        text = f"between {before[0].path} and {a.path} {names[0]} computes {mine[0]}, {names[1]} {yours[0]}"
        if mine[1].text != yours[1].text:
            text += f"; in {a.path} {names[0]} computes with {mine[1].text}, {names[1]} with {yours[1].text}"
        yield Reason("variant", text, row.difference, after)


def _by_statistics(joined: Joined, a: Value, b: Value, before: float) -> Iterator[Reason]:
    """Of one side only statistics are known: which formula, on the other's input, makes an output with these?"""
    which = 0 if a.values is not None else 1
    known, unknown = (a, b) if which == 0 else (b, a)
    maker = MAKERS.get(_family(joined, a))
    if maker is None or known.values is None or unknown.values is not None:
        return
    sides = (joined.first, joined.other) if which == 0 else (joined.other, joined.first)
    twin = _twin(joined, a, b)
    mine = fitting(maker, list(_tasks(joined, which, known, twin)))
    if mine is None:
        return
    for formula in _candidates(maker, mine[1], sides[1], unknown):
        with np.errstate(all="ignore"):
            made = (formula.whole or formula.make)(mine[1])
        after = rows_apart(row_of(replace(known, values=made, axis=-1)), row_of(unknown)) if made.size == unknown.size else np.inf
        if after <= LEFT * before and formula.text != mine[0].text:
            text = f"{sides[0].name} computes with {mine[0].text}, {sides[1].name} with {formula.text}"
            yield Reason(formula.reason, text, before, float(after))
            return


def _candidates(maker: Maker, task: Task, side: Side, value: Value) -> Iterator[Formula]:
    if maker in (norms, batch_norms):
        layer = next((x for x in side.architecture.layers if x.path == value.layer), None)
        told = layer.settings.get("epsilon") if layer is not None else None
        yield from norms_with(task, (*([float(told)] if isinstance(told, int | float) else []), *EPSILONS))
    elif maker is activations:
        yield from maker(task)


def _exchanged(formula: Formula, task: Task, other: Value) -> float:
    """The other's formula on this side's input: is it what the other put out?"""
    with np.errstate(all="ignore"):
        made, wanted = formula.make(task), formula.keep(other.turned)
    return apart(made, wanted) if made.shape == wanted.shape else float("inf")


def _twin(joined: Joined, a: Value, b: Value) -> Twin | None:
    return next((t for t in joined.twins if t.first.path == a.layer or t.other.path == b.layer), None)


def _tasks(joined: Joined, which: int, value: Value, twin: Twin | None) -> Iterator[Task]:
    side, task = (joined.first, joined.other)[which], _task(joined, which, value, twin)
    values = joined.looks[which].values
    at = next(i for i, v in enumerate(values) if v is value)
    for earlier in reversed(values[max(0, at - BACK) : at]):
        if earlier.values is not None:
            yield replace(task, x=earlier.turned)
    for _, array in leaves(side.batch.inputs, lambda thing: isinstance(thing, np.ndarray)):
        if array.dtype.kind == "f":
            turned = np.moveaxis(array, value.axis, -1) if array.ndim == value.turned.ndim > 1 else array
            yield replace(task, x=turned)


def _task(joined: Joined, which: int, value: Value, twin: Twin | None) -> Task:
    """Without its input."""
    side = (joined.first, joined.other)[which]
    settings = next((dict(x.settings) for x in side.architecture.layers if x.path == value.layer), {})
    weights = {}
    if twin is not None:
        unit = twin.first if which == 0 else twin.other
        weights = to_common(unit, twin.layout[which], read(side, unit))
    return Task(np.zeros(0), value.turned, weights, settings)


def _family(joined: Joined, value: Value) -> str:
    layer = next((x for x in joined.first.architecture.layers if x.path == value.layer), None)
    if layer is not None and layer.family not in ("other", "container"):
        return layer.family
    return "softmax" if value.word.endswith("softmax") else "activation" if value.activation else ""


def _simple(before: float, a: Value, b: Value) -> Iterator[Reason]:
    """One is the other times a number, plus a number, or with its units in another order."""
    if a.values is None or b.values is None or a.turned.shape != b.turned.shape or not np.isfinite(before):
        return
    x, y = a.turned.astype(np.float64), b.turned.astype(np.float64)
    factor = float((x * y).sum() / max((x * x).sum(), 1e-300))
    if (after := apart(factor * x, y)) <= LEFT * before and factor:
        yield Reason("factor", f"the second is {factor:.6g} times the first", before, after)
        return
    shift = float((y - x).mean())
    if (after := apart(x + shift, y)) <= LEFT * before:
        yield Reason("shift", f"the second is the first plus {shift:.6g}", before, after)
    elif x.ndim > 1 and (after := apart(np.sort(x, -1), np.sort(y, -1))) <= LEFT * before:
        yield Reason("layout", "the same values stand in another order along the units", before, after)
