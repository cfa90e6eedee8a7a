"""Loss, gradients and one step of the optimiser, side by side."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from sleuth.comparing.carrying import Twin, read
from sleuth.comparing.distance import apart, rms
from sleuth.comparing.gates import effective
from sleuth.comparing.layout import to_common
from sleuth.comparing.looking import Wide, explained, jittered
from sleuth.comparing.pairing import Joined
from sleuth.comparing.result import Row
from sleuth.comparing.side import Side
from sleuth.core.contract.adapter import Bench

# A gradient that is nothing but rounding, such as a bias's before a batch-norm, is measured against the others.
FAINT = 1e-4
# Only entries whose gradient stands this far above its own rounding say where a step should go.
CLEAR = 1e3
STEP_TOLERANCE = 1e-3

ByUnit = list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]


def loss_row(joined: Joined) -> Row:
    clean = [_loss(side, wide.bench) for side, wide in _sides(joined)]
    plain = [_loss(s, None) if w.bench is not None else jittered(s, partial(_loss, s, None)) for s, w in _sides(joined)]
    noises = [apart(a, b) for a, b in zip(clean, plain, strict=True)]
    kind = " and ".join(f"{float(v[0]):.6g}" for v in clean)
    return Row("loss", "loss", "loss", kind, apart(clean[0], clean[1]), explained(joined.epsilon, *noises))


def _loss(side: Side, wide: Bench | None) -> np.ndarray:
    return np.array([(wide or side.bench).loss(side.batch)])


def gradients(joined: Joined, training: bool) -> tuple[list[Row], ByUnit]:
    """Rows from the loss backwards, and the gradients themselves in the common form."""
    clean = [_by_path(side, wide.bench, training) for side, wide in _sides(joined)]
    plain = [
        _by_path(side, None, training) if wide.bench is not None else jittered(side, partial(_by_path, side, None, training))
        for side, wide in _sides(joined)
    ]
    largest = max((rms(v) for side in clean for v in side.values() if v is not None), default=0.0)
    rows, found = [], []
    for twin in joined.twins:
        both = common(twin, clean[0], clean[1])
        own = common(twin, plain[0], plain[1])
        found.append(both)
        for role in (r for r in both[0] if r in both[1]):
            a, b = both[0][role], both[1][role]
            noises = [apart(both[i][role], own[i][role], FAINT * largest) for i in (0, 1) if role in own[i]]
            name = twin.first.tensors.get(role, twin.first.path), twin.other.tensors.get(role, twin.other.path)
            rows.append(Row("gradient", *name, twin.first.kind, apart(a, b, FAINT * largest), explained(joined.epsilon, *noises)))
        rows += _missing(twin, both)
    return rows[::-1], found


def _missing(twin: Twin, both: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]) -> list[Row]:
    lone = [role for role in ("weight", "scale", "weight_h") if (role in both[0]) != (role in both[1])]
    remark = "only one of them gets a gradient"
    return [Row("gradient", twin.first.path, twin.other.path, twin.first.kind, float("inf"), 0.0, remark) for _ in lone]


def step_rows(joined: Joined, training: bool, slopes: ByUnit) -> tuple[list[Row], ByUnit]:
    """One step from the same weights. Entries whose gradient is hardly more than rounding are left out: there an optimiser that
    divides by its size goes either way."""
    moved = [_update(side, joined.twins, i, training) for i, side in enumerate((joined.first, joined.other))]
    largest = max((rms(v) for both in slopes for side in both for v in side.values()), default=0.0)
    rows, found = [], []
    for k, (twin, slope) in enumerate(zip(joined.twins, slopes, strict=True)):
        weights, changes = zip(*(side[k] for side in moved), strict=True)
        both = _effective(twin, changes[0]), _effective(twin, changes[1])
        found.append(both)
        for role in (r for r in both[0] if r in both[1]):
            clear = _clear(slope, role, both[0][role].shape, joined.epsilon, largest)
            a, b = both[0][role][clear], both[1][role][clear]
            if not a.size or (not rms(a) and not rms(b)):
                continue
            lost = joined.epsilon * max(rms(weights[0].get(role, a)), rms(b)) / max(rms(a), rms(b))
            name = (
                twin.first.tensors.get(role, f"{twin.first.path} {role}"),
                twin.other.tensors.get(role, f"{twin.other.path} {role}"),
            )
            rows.append(Row("step", *name, twin.first.kind, apart(a, b), max(STEP_TOLERANCE, 4 * lost)))
    return rows, found


def common(
    twin: Twin, first: Mapping[str, np.ndarray | None], other: Mapping[str, np.ndarray | None]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By role in the common form; a bias that one side has twice gets the same gradient twice."""
    own = []
    for unit, values in ((twin.first, first), (twin.other, other)):
        own.append({role: v for role, path in unit.tensors.items() if (v := values.get(path)) is not None})
    both = twin.common((own[0], own[1]))
    if twin.first.family == "recurrent" and ("bias" in twin.first.tensors or "bias" in twin.other.tensors):
        return tuple({r: v for r, v in side.items() if not r.startswith("bias_h")} for side in both)  # type: ignore[return-value]
    return both


def _sides(joined: Joined) -> list[tuple[Side, Wide]]:
    return list(zip((joined.first, joined.other), joined.wide, strict=True))


def _by_path(side: Side, wide: Bench | None, training: bool) -> dict[str, np.ndarray | None]:
    bench = wide or side.bench
    before = bench.snapshot()
    try:
        bench.set_training(training)
        found = bench.gradients(side.batch).by_path
        own = {p: None if g is None else np.array(side.adapter.values(g), np.float64) for p, g in found.items()}
        return side.with_pieces(own)
    finally:
        bench.restore(before)
        side.as_compared(bench)


def _update(
    side: Side, pairs: list[Twin], which: int, training: bool
) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """Per unit, its weights before and how far they went, in the common form."""
    units = [twin.first if which == 0 else twin.other for twin in pairs]
    before = side.bench.snapshot()
    try:
        side.bench.set_training(training)
        old = [read(side, unit) for unit in units]
        side.bench.step(side.batch)
        new = [read(side, unit) for unit in units]
    finally:
        side.bench.restore(before)
        side.as_compared()
    found = []
    for twin, unit, a, b in zip(pairs, units, old, new, strict=True):
        learned = [role for role in unit.tensors if role not in unit.statistics]
        change = {role: b[role] - a[role] for role in learned}
        found.append((to_common(unit, twin.layout[which], a), to_common(unit, twin.layout[which], change)))
    return found


def _effective(twin: Twin, change: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return effective(change) if twin.first.family == "recurrent" else change


def _clear(
    slope: tuple[dict[str, np.ndarray], dict[str, np.ndarray]], role: str, shape: tuple[int, ...], epsilon: float, largest: float
) -> np.ndarray:
    clear = np.ones(shape, bool)
    for side in slope:
        gradient = side.get(role, side.get(role.replace("bias", "bias_x")))
        if gradient is not None and gradient.shape == shape:
            clear &= np.abs(gradient) > CLEAR * epsilon * max(rms(gradient), FAINT * largest)
    return clear
