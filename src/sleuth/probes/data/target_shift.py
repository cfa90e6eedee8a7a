"""How far ahead of the inputs the targets of sequences lie: what the loss compares a position with is looked for in the input."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sleuth.core.contract.adapter import Compared, Compares
from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation
from sleuth.core.reading.positions import IGNORED, rows_in
from sleuth.core.runtime.tree import leaves
from sleuth.core.stage import Stage
from sleuth.core.subject import Parts
from sleuth.core.trial import TargetShift
from sleuth.probes.lab.changed_inputs import first_samples, input_arrays
from sleuth.probes.lab.probe import Lab, probe
from sleuth.probes.lab.roles import answers

SHIFTS = range(-3, 4)
# Shorter ones have too few positions to tell a shift.
SHORTEST = 4
SAMPLES = 32
NONE = "no input is a sequence that the targets lie along: there is no position to compare them at"


@dataclass(frozen=True)
class Laid:
    """A target laid over the positions of an input: (rows, columns) of both, and which of them count."""

    path: str
    inputs: np.ndarray
    targets: np.ndarray
    counts: np.ndarray


@probe(
    title="Looking for the targets among the inputs",
    stage=Stage.MODEL,
    rank=2,
    emits=(TargetShift,),
    needs=("forward", "loss"),
    share=0.05,
)
def target_shift(lab: Lab) -> Iterator[Observation]:
    few = first_samples(lab, lab.batch, SAMPLES)
    start = lab.bench.snapshot()
    try:
        lab.bench.set_training(False)
        laid = _over_an_input(lab, few)
    finally:
        lab.bench.restore(start)
    yield _described(lab, few, laid)


def _over_an_input(lab: Lab, batch: Parts) -> Laid:
    sequences = {p: x for p, x in input_arrays(lab, batch.inputs).items() if _is_sequence(x)}
    found = [laid for call in _calls(lab, batch) for p, x in sequences.items() if (laid := _laid(lab, batch, call, p, x))]
    if not found:
        raise Unsupported(NONE)
    # Masks, kinds and places stand beside the ids and are sequences too: the one whose elements are the targets counts.
    return max(found, key=lambda laid: max(_shares(laid, axis)[0][k] for axis in (1, 0) for k in SHIFTS))


def _is_sequence(x: np.ndarray) -> bool:
    return x.ndim in (2, 3) and max(x.shape[:2]) >= SHORTEST and x.dtype.kind in "iuf" and x.size > 0


def _calls(lab: Lab, batch: Parts) -> list[Compared]:
    """What a loss function was given; what the batch holds as target, where none was heard."""
    heard = lab.adapter.compared(lab.bench, batch) if isinstance(lab.adapter, Compares) else ()
    if heard:
        return list(heard)
    targets = [a for _, a in leaves(batch.target, lab.adapter.is_array)]
    return [Compared("", None, a, IGNORED) for a in targets]


def _laid(lab: Lab, batch: Parts, call: Compared, path: str, x: np.ndarray) -> Laid | None:
    target = lab.adapter.values(call.target)
    rows = _rows(lab, batch, call, x, target)
    if rows is None:
        return None
    width = x.shape[2:]
    values = target.reshape(-1, *width) if target.size == len(rows) * int(np.prod(width)) else None
    if values is None or (values.dtype.kind == "f") != (x.dtype.kind == "f"):
        return None
    laid = np.zeros(x.shape, dtype=values.dtype).reshape(-1, *width)
    counts = np.zeros(len(laid), dtype=bool)
    laid[rows] = values
    counts[rows] = True if call.ignored is None or values.dtype.kind == "f" else values != call.ignored
    return Laid(path, x, laid.reshape(x.shape), counts.reshape(x.shape[:2]))


def _rows(lab: Lab, batch: Parts, call: Compared, x: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """At which position of the input each row of the target is predicted."""
    positions = x.shape[0] * x.shape[1]
    width = int(np.prod(x.shape[2:]))
    if call.output is not None:
        for _, made in leaves(answers(lab, batch), lab.adapter.is_array):
            rows = _rows_in(lab.adapter.values(made), lab.adapter.values(call.output), x)
            if rows is not None:
                return rows
    # Answers that cannot be found again: as many as there are positions stand in their order.
    return np.arange(positions) if target.size == positions * width else None


def _rows_in(values: np.ndarray, output: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    if values.dtype.kind != "f" or values.shape[:2] != x.shape[:2]:
        return None
    return rows_in(values if values.ndim > 2 else values[..., None], output)


def _described(lab: Lab, batch: Parts, laid: Laid) -> TargetShift:
    axis = max((1, 0), key=lambda axis: (max(_shares(laid, axis)[0].values()), axis))
    shares, counted = _shares(laid, axis)
    given = [lab.adapter.values(a) for _, a in leaves(batch.target, lab.adapter.is_array)]
    whole = [g for g in given if g.shape == laid.inputs.shape]
    told = (
        _shares(Laid("", laid.inputs, whole[0], whole[0] != IGNORED), axis)[0] if len(whole) == 1 and whole[0].ndim == 2 else {}
    )
    integers = laid.inputs.dtype.kind != "f"
    return TargetShift(
        input="" if len(input_arrays(lab, batch.inputs)) == 1 else laid.path,
        axis=axis,
        samples=laid.inputs.shape[1 - axis],
        length=laid.inputs.shape[axis],
        shares=shares,
        counted=counted,
        chance=_chance(laid) if integers else 0.0,
        ignored=1.0 - float(laid.counts.mean()),
        given=told,
        integers=integers,
    )


def _shares(laid: Laid, axis: int) -> tuple[Mapping[int, float], Mapping[int, int]]:
    x, y, counts = (a.swapaxes(0, 1) if axis == 0 else a for a in (laid.inputs, laid.targets, laid.counts))
    length = x.shape[1]
    shares, counted = {}, {}
    for k in SHIFTS:
        here, there = slice(max(0, -k), min(length, length - k)), slice(max(0, k), min(length, length + k))
        if abs(k) >= length:
            shares[k], counted[k] = 0.0, 0
            continue
        same = _equal(y[:, here], x[:, there])[counts[:, here]]
        shares[k], counted[k] = (float(same.mean()) if same.size else 0.0), int(same.size)
    return shares, counted


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    same = one == other if one.dtype.kind != "f" else np.isclose(one, other, rtol=1e-4, atol=1e-6)
    return same.reshape(*same.shape[:2], -1).all(axis=2)


def _chance(laid: Laid) -> float:
    x, y = laid.inputs.ravel(), laid.targets[laid.counts].ravel()
    if not y.size:
        return 0.0
    ids, counts = np.unique(x, return_counts=True)
    other = dict(zip(*(a.tolist() for a in np.unique(y, return_counts=True)), strict=True))
    return float(sum(n * other.get(i, 0) for i, n in zip(ids.tolist(), counts.tolist(), strict=True)) / (x.size * y.size))
